package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/units"
)

// mostDeviation is the inverse of the largest accepted deviation of the replayed from the recorded
// peak: 2 %.
const mostDeviation = 50

// leastEntries is the least recommended length of the history.
const leastEntries = 1_000_000

// gap returns why a recording cannot be answered by any replay, or "".
func (r *Recorded) gap() string { return torch.Gap(r.Empty, r.Wrapped) }

func (r *Result) cannot(why string) {
	r.Cannot, r.Runs, r.Final = why, []Point{}, r.Recorded.Final
	if x := r.Recorded.Explained; x != nil && r.Recorded.Failure != nil {
		f := r.Recorded.Failure
		r.Explained = &Explained{Event: f.Event, Which: "last", Of: f.Count, Recorded: x}
	}
}

// faithful replays the recorded settings on the recorded device, and reports whether the peak of
// reserved memory is close to the recorded one. If not, the search has no answer. An unknown device
// is replaced by an ample one. If it once had no room, a device that just holds the recorded peak
// has no room for the same requests, so it comes first.
func (s *search) faithful() (bool, error) {
	rec := &s.Recorded
	if len(s.Runs) == 0 || !s.Runs[0].Recorded || rec.Peak == 0 {
		return true, nil
	}
	at, ample := rec.Capacity, compare.Ample(max(s.LowerBound, rec.Peak/2))
	switch {
	case at != 0:
	case rec.Tight:
		at = rec.Peak
	default:
		at = ample
	}
	row, err := s.trials[0].Measure(s.ctx, at)
	if err == nil && rec.Capacity == 0 && row.OOMs > 0 {
		row, err = s.trials[0].Measure(s.ctx, ample)
	}
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

// profilers are the lines of Python that record a run by the profiler of a framework: the module,
// the start and the end.
var profilers = map[string][3]string{
	jax: {"import jax", `jax.profiler.start_trace("profile")  # before the first array is made`,
		"    jax.profiler.stop_trace()  # writes a file .xplane.pb below profile"},
	tensorflow: {"import tensorflow as tf", `tf.profiler.experimental.start("profile")  # before the first tensor is made`,
		"    tf.profiler.experimental.stop()  # writes a file .xplane.pb below profile"},
}

// recipe returns Python code that records a run from its start, nil if the framework is unknown.
func (r *Recorded) recipe() []string {
	if p, ok := profilers[r.Framework]; ok {
		return []string{p[0], p[1], "try:", "    train_a_few_steps()", "finally:  # also when it runs out of memory", p[2]}
	}
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

func (t *answerWriter) refuse() {
	t.a.Verdict, t.a.Recipe = CannotTell, t.Recorded.recipe()
	t.say("This file cannot answer that: %s.", t.Cannot)
	switch {
	case t.a.Recipe == nil:
		t.say("A recording that begins before the first allocation can.")
	case t.Recorded.Framework != pytorch:
		t.say("A trace of the profiler that begins before the first allocation can:")
	case t.Recorded.Replayed != 0:
		switch {
		case slices.Contains(t.Recorded.Unknown, torch.UnknownPools):
			t.say("If the program used private pools (CUDA graphs, MemPool), that may be why: the file does not record %s. "+
				"Those of newer releases of PyTorch do.", torch.UnknownPools)
		case t.Recorded.Opening == 0:
			t.say("If the program changed the settings of its allocator, that may be why: the file has only those of its end. " +
				"Another snapshot before each change, joined by \"vramyard trace convert\", shows them.")
		}
		t.say("A snapshot that begins before the first allocation may:")
	default:
		t.say("A snapshot recorded like this can:")
	}
}
