package whatif

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/units"
)

// mostDeviation is the largest part by which the replayed peak may differ from the recorded one:
// one in fifty.
const mostDeviation = 50

// leastEntries is how many entries the recommended history has at least.
const leastEntries = 1_000_000

// lacks returns why a recording has no answer whatever a replay shows, "" if it may have one.
func (r *Recorded) lacks() string { return torch.Lacks(r.Empty, r.Wrapped) }

func (r *Result) cannot(why string) {
	r.Cannot, r.Runs, r.Final = why, []Point{}, r.Recorded.Final
	if x := r.Recorded.Explained; x != nil && r.Recorded.Failure != nil {
		f := r.Recorded.Failure
		r.Explained = &Explained{Event: f.Event, Which: "last", Of: f.Count, Recorded: x}
	}
}

// faithful replays the recorded settings on the recorded device, and reports whether the most bytes
// that they hold are nearly the recorded ones. If not, the result is one without an answer. If the
// device is not known, it is the one that everything is measured on without a card, or a larger one
// that holds twice the recorded peak.
func (s *search) faithful() (bool, error) {
	rec := &s.Recorded
	if len(s.Runs) == 0 || !s.Runs[0].Recorded || rec.Peak == 0 {
		return true, nil
	}
	at := rec.Capacity
	if at == 0 {
		at = compare.Ample(max(s.LowerBound, rec.Peak/2))
	}
	row, err := s.contests[0].Measure(s.ctx, at)
	if err != nil || !row.Starts {
		return err == nil, err
	}
	s.spend(0)
	rec.Replayed = row.PeakReserved
	more, less := rec.Replayed-min(rec.Replayed, rec.Peak), rec.Peak-min(rec.Replayed, rec.Peak)
	if more+less <= rec.Peak/mostDeviation {
		return true, nil
	}
	differs := share(more, rec.Peak) + " more"
	if less > 0 {
		differs = share(less, rec.Peak) + " less"
	}
	s.cannot(fmt.Sprintf("replayed with the recorded settings the run holds %s at most, %s than the %s that were recorded",
		units.Bytes(rec.Replayed), differs, units.Bytes(rec.Peak)))
	return false, nil
}

func share(part, n device.Size) string { return units.Percent(float64(part) / float64(n)) }

// recipe returns the lines of Python that record a run from its beginning, nil if the file is not
// of PyTorch.
func (r *Recorded) recipe() []string {
	if r.Framework != pytorch {
		return nil
	}
	return []string{
		"import torch",
		fmt.Sprintf(`torch.cuda.memory._record_memory_history(max_entries=%s, stacks="python")  # before the model is made`,
			strings.ReplaceAll(units.Count(uint64(max(leastEntries, 10*r.Entries))), ",", "_")),
		"try:",
		"    train_a_few_steps()",
		"finally:  # also when it runs out of memory",
		`    torch.cuda.memory._dump_snapshot("run.pickle")`,
	}
}

func (t *teller) refuse() {
	t.a.Verdict, t.a.Recipe = CannotTell, t.Recorded.recipe()
	t.say("This file cannot answer that: %s.", t.Cannot)
	switch {
	case t.a.Recipe == nil:
		t.say("A recording that begins before the first allocation can.")
	case t.Recorded.Replayed != 0:
		t.say("A snapshot that begins before the first allocation may, if no private pool (CUDA graph) is in it:")
	default:
		t.say("A snapshot recorded like this can:")
	}
}
