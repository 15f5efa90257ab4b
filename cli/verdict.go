package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/launch"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// outcome is the result of a run; its first process is the one that is answered about.
type outcome struct{ *launch.Outcome }

// peak returns the most bytes that the process held.
func (o *outcome) peak() device.Size {
	if len(o.Processes) == 0 {
		return 0
	}
	return o.Processes[0].Peak
}

// together returns the most bytes that all processes held at a time.
func (o *outcome) together() device.Size { return max(o.Peak, o.peak()) }

// others returns the bytes of other processes and their contexts beside which the process has to
// fit: when its last request was refused, or otherwise when all together held the most.
func (o *outcome) others() device.Size {
	if p := o.Processes[0]; p.Refused > 0 {
		return p.Others
	}
	return o.together() - o.peak()
}

// exhausted reports whether the run failed for lack of memory.
func (o *outcome) exhausted() bool {
	return o.Status != 0 && len(o.Processes) > 0 && o.Processes[0].Exhausted()
}

// matters reports whether the time at which events complete can change the answer.
func (o *outcome) matters() bool {
	return o.Status == 0 && slices.ContainsFunc(o.Processes, func(p *launch.Process) bool { return p.Waited })
}

// unrecorded returns the error for an outcome without a history of the process, nil for one with.
func (f *runFlags) unrecorded(out *outcome) error {
	switch {
	case len(out.Processes) == 0 || out.peak() == 0 && out.Processes[0].Refused == 0:
		return fmt.Errorf("the program ended with status %d before PyTorch used the GPU: nothing is recorded. "+
			"An interpreter with -E, -I or -S does not use the simulated GPU", out.Status)
	case out.Processes[0].Snapshot != "":
		return nil
	}
	err := fmt.Errorf("the program ended with status %d before its history was written, as after a signal or "+
		"os._exit. Until then PyTorch reserved at most %s", out.Status, units.Bytes(out.peak()))
	if out.Processes[0].Refused > 0 {
		err = fmt.Errorf("%w, and %s", err, f.refusal(out))
	}
	if out.exhausted() {
		return failure{err}
	}
	return err
}

// The verdicts of a run.
const (
	runFits     = "fits"         // PyTorch granted every request
	runRefusals = "refusals"     // it refused some, and the program went on
	runTooSmall = "does-not-fit" // the program ended because it refused one
	runUnknown  = "no-answer"    // the program failed for another reason
)

// runAnswer is the part of the answer of a run that whatif does not have, as text and figures. JSON
// and pages have it too.
type runAnswer struct {
	Verdict string   `json:"verdict"`     // one of the verdicts of a run
	Text    []string `json:"text"`        // sentences, one paragraph each
	Status  int      `json:"exit_status"` // of the program
	Torch   string   `json:"torch"`       // version of PyTorch
	Steps   uint64   `json:"step_count"`  // steps that the process ended

	Processes int         `json:"process_count"`       // that used the GPU
	Peak      device.Size `json:"peak_reserved_bytes"` // of the process that the answer is about
	// most bytes of all processes at a time, with the context of each
	Together device.Size `json:"together_bytes"`
	Context  device.Size `json:"process_context_bytes"` // context of each process

	Refused  int         `json:"refused_count"`           // requests that PyTorch refused
	Asked    device.Size `json:"refused_bytes,omitempty"` // bytes of the last of them
	FailedAt uint64      `json:"refused_step,omitempty"`  // step of the last of them, counted from 1

	Guessed launch.Guessed `json:"guessed"`         // calls that took a work area of unknown size
	Ranges  runRanges      `json:"ranges"`          // other peaks of reserved memory
	Reads   []launch.Read  `json:"reads"`           // lines that read unknown values
	Live    device.Size    `json:"peak_live_bytes"` // most live bytes
	Holders []top.Holder   `json:"holders"`         // call sites with the most memory at that time
}

// runRanges are peaks of reserved memory that another run or another system may have. A peak that
// is not known, or does not differ, is absent.
type runRanges struct {
	AtOnce  device.Size `json:"events_at_once_bytes,omitempty"`        // if events complete at once
	Late    device.Size `json:"events_late_bytes,omitempty"`           // if they complete when the program waits for them
	Falling device.Size `json:"falling_addresses_bytes,omitempty"`     // on Linux
	Rising  device.Size `json:"rising_addresses_bytes,omitempty"`      // on WSL 2
	Areas   device.Size `json:"guessed_areas_bytes,omitempty"`         // most bytes of guessed work areas live at a time
	Without device.Size `json:"without_guessed_areas_bytes,omitempty"` // without guessed work areas
}

// say adds a paragraph.
func (a *runAnswer) say(format string, args ...any) {
	a.Text = append(a.Text, fmt.Sprintf(format, args...))
}

// String returns the answer as text.
func (a *runAnswer) String() string {
	text := strings.Join(a.Text, "\n") + "\n" + reads(a.Reads) + "\n"
	if len(a.Holders) > 0 {
		text += fmt.Sprintf("At the peak %s are live. Most of it belongs to:\n", units.Bytes(a.Live))
		for _, h := range a.Holders {
			text += fmt.Sprintf("  %10s  %s  %s\n", units.Bytes(h.Bytes), h.Name, h.Category)
		}
		text += "\n"
	}
	return text
}

// answerOf returns the answer without ranges and holders; late is the run in which events complete
// late, if there is one.
func (f *runFlags) answerOf(out, atOnce, late *outcome) *runAnswer {
	p := out.Processes[0]
	a := &runAnswer{
		Status: out.Status, Torch: out.Torch.Torch, Steps: p.Steps, Processes: len(out.Processes), Peak: p.Peak,
		Together: out.together() + f.o.Context, Context: f.o.Context, Refused: p.Refused, Asked: p.Asked,
		FailedAt: p.FailedAt, Guessed: p.Guessed, Reads: append([]launch.Read{}, p.Reads...),
	}
	f.verdict(a, out)
	f.guesses(a)
	f.timing(a, atOnce, late)
	return a
}

// gpu names the GPU and its memory.
func (f *runFlags) gpu() string {
	gpu := "a GPU"
	if c, ok := sim.CardOf(f.o.Device); ok {
		gpu = "the " + c.Model
	}
	return fmt.Sprintf("%s (%s, of which CUDA's context takes %s)", gpu, units.Bytes(f.o.Device.Capacity),
		units.Bytes(f.o.Context))
}

// refusal names the last request that was refused.
func (f *runFlags) refusal(out *outcome) string {
	p := out.Processes[0]
	text := fmt.Sprintf("in step %d PyTorch found no room for %s on %s", p.FailedAt, units.Bytes(p.Asked), f.gpu())
	if p.Others > 0 {
		text += fmt.Sprintf(", while other processes held %s with their contexts", units.Bytes(p.Others))
	}
	return text
}

// verdict answers whether the program fits.
func (f *runFlags) verdict(a *runAnswer, out *outcome) {
	p, where, through := out.Processes[0], f.gpu(), ""
	if name := f.o.Allocator.Strategy; name != "" {
		through = " on strategy " + name
	}
	peak := units.Bytes(p.Peak)
	text := ""
	switch {
	case out.exhausted():
		a.Verdict, text = runTooSmall, "Does not fit: "+f.refusal(out)+"."
	case out.Status != 0:
		a.Verdict = runUnknown
		after := "before its first step ended"
		if p.Steps > 0 {
			after = "after " + units.Several(p.Steps, "step")
		}
		text = fmt.Sprintf("No answer: the program ended with status %d %s, not for lack of memory. Until then "+
			"PyTorch reserved at most %s on %s.", out.Status, after, peak, where)
		if p.Refused > 0 {
			text += fmt.Sprintf(" It refused %s, the last one for %s in step %d, and the program went on.",
				units.Several(p.Refused, "request"), units.Bytes(p.Asked), p.FailedAt)
		}
	case p.Refused > 0:
		a.Verdict = runRefusals
		text = fmt.Sprintf("Fits only with refusals: PyTorch refused %s on %s, and the program went on.",
			units.Several(p.Refused, "request"), where)
	default:
		a.Verdict = runFits
		steps := "without a step of an optimizer"
		if p.Steps > 0 {
			steps = "in " + units.Several(p.Steps, "step")
		}
		text = fmt.Sprintf("Fits: PyTorch %s%s reserved at most %s on %s, %s.", out.Torch.Torch, through, peak, where, steps)
	}
	switch n := len(out.Processes); {
	case n > 1 && p.Refused > 0:
		text += fmt.Sprintf(" This is one of %d processes.", n)
	case n > 1:
		text += fmt.Sprintf(" Of %d processes this is the one with the highest peak.", n)
	}
	a.say("%s", text)
	if out.together() > p.Peak {
		a.say("Together the processes held at most %s of the GPU at a time, with a context each.", units.Bytes(a.Together))
	}
	if n := out.others(); n > 0 {
		a.say("The answer below is about this process. It counts %s of the others as if they were part of CUDA's context.",
			units.Bytes(n))
	}
}

// mostLines bounds the lines that are named of a program.
const mostLines = 5

// reads names the lines at which the program read values that are unknown, those first on which
// sizes depend.
func reads(all []launch.Read) (text string) {
	values := slices.DeleteFunc(slices.Clone(all), func(r launch.Read) bool { return r.Shape != "" })
	shapes := slices.DeleteFunc(slices.Clone(all), func(r launch.Read) bool { return r.Shape == "" })
	for _, k := range []struct {
		title string
		lines []launch.Read
	}{
		{"Sizes of tensors that depend on unknown values differ from a GPU's:", shapes},
		{"Unknown values of tensors were read as zeros:", values},
	} {
		if len(k.lines) == 0 {
			continue
		}
		text += k.title + "\n"
		for _, r := range k.lines[:min(mostLines, len(k.lines))] {
			text += strings.TrimRight(fmt.Sprintf("  %10s  %s  %s", units.Several(r.Times, "time"), r.Line, r.Shape), " ") + "\n"
		}
		if n := len(k.lines) - mostLines; n > 0 {
			text += fmt.Sprintf("  and at %s\n", units.Several(n, "more line"))
		}
	}
	return text
}

// guesses names the calls whose work area is unknown, in one paragraph for each kind.
func (f *runFlags) guesses(a *runAnswer) {
	area, before := "a work area of "+units.Bytes(f.o.CuDNN.Bound), len(a.Text)
	for _, k := range []struct {
		calls             uint64
		noun, area, owner string
	}{
		{a.Guessed.Convolutions, "convolution", area, "cuDNN's own is"},
		{a.Guessed.Recurrent, "recurrent call", area, "cuDNN's own is"},
		{a.Guessed.Other, "other call", "a guessed work area", "that of cuDNN, cuSOLVER, cuSPARSE or cuFFT is"},
	} {
		if k.calls > 0 {
			a.say("%s ran with %s: %s not known (docs/without-gpu.md).", units.Several(k.calls, k.noun), k.area, k.owner)
		}
	}
	if len(a.Text) > before && f.o.CuDNN.Bound == 0 {
		a.say("These calls take no memory here, so the peak may be too low.")
	}
}

// timing says whether the time at which events complete changes the answer; late is the run in
// which they complete late, if there is one.
func (f *runFlags) timing(a *runAnswer, atOnce, late *outcome) {
	if late != nil {
		a.Ranges.AtOnce, a.Ranges.Late = atOnce.peak(), late.peak()
	}
	switch {
	case late != nil && late.Status != 0:
		a.say("With events that complete at once the program ended with status 0, and PyTorch reserved at most "+
			"%s. This answer is about the run with events that complete only when the program waits for them, which failed.",
			units.Bytes(atOnce.peak()))
	case late != nil:
		a.say("With events that complete at once PyTorch reserved at most %s, and %s with events that complete "+
			"only when the program waits for them. On a GPU the peak usually lies between. This answer is about the "+
			"higher one.",
			units.Bytes(atOnce.peak()), units.Bytes(late.peak()))
	case atOnce.matters():
		a.say("Blocks that another stream uses become free as soon as the program frees them. On a GPU they become free " +
			"later, so the peak may be higher: --extremes runs the program again with the latest time.")
	case f.extremes && atOnce.Status == 0:
		a.say("The time at which events complete does not matter: no block waited for another stream.")
	}
}

// ranges adds how far the peak depends on guessed work areas and on the order of addresses, by
// replays of the recorded requests. They are made only if a replay of all requests has the recorded
// peak.
func (f *runFlags) ranges(
	ctx context.Context, a *runAnswer, out *outcome, w *whatif.SurveyedTrace, rec whatif.Recorded, o whatif.Options,
) (err error) {
	areas := out.Processes[0].Areas
	if out.exhausted() && len(areas.Numbers) > 0 {
		a.say("Guessed work areas are part of it: --cudnn none shows how far the program gets without them.")
		return nil
	}
	if rec.Setup.Name == "" || out.Status != 0 || w.Refusals.Count > 0 {
		return nil
	}
	peak := func(src trace.Source, o whatif.Options) (n device.Size) {
		if err == nil {
			n, err = whatif.Peak(ctx, src, rec.Setup, o)
		}
		return n
	}
	falling, rising := o, o
	falling.Device.Policy, rising.Device.Policy = sim.TopDown, sim.FirstFit
	low, high := peak(w, falling), peak(w, rising)
	here := low
	if o.Device.Policy == sim.FirstFit {
		here = high
	}
	if err != nil || here != rec.Peak {
		return err
	}
	if len(areas.Numbers) > 0 {
		if n, most := liveAreas(w, areas.Numbers); n == areas.Granted {
			a.Ranges.Areas, a.Ranges.Without = most, peak(trace.Without(w, areas.Numbers), o)
			a.say("At most %s of guessed work areas are live at a time, %.1f %% of the peak; a replay without "+
				"them reserves at most %s.", units.Bytes(most), 100*float64(most)/float64(here),
				units.Bytes(a.Ranges.Without))
		} else {
			a.say("The share of guessed work areas in the peak is not known: the history of the run is not complete.")
		}
	}
	if low != high {
		a.Ranges.Falling, a.Ranges.Rising = low, high
		a.say("The order of addresses matters: a replay reserves at most %s where they fall, as on Linux, and "+
			"%s where they rise, as on WSL 2.", units.Bytes(low), units.Bytes(high))
	}
	return err
}

// liveAreas counts the allocations of a trace, and returns the most bytes that the ones with these
// numbers have at a time.
func liveAreas(src trace.Source, numbers map[uint64]struct{}) (n uint64, most device.Size) {
	var now device.Size
	live := map[uint32]device.Size{}                   // by slot
	_ = src.Batches(func(events []trace.Event) error { // it was read before
		for i := range events {
			e := &events[i]
			if e.Kind == trace.Alloc {
				n++
				if _, ok := numbers[n]; ok {
					live[e.Slot] = e.Size
					now += e.Size
				}
			} else if e.Kind == trace.Free {
				now -= live[e.Slot]
				delete(live, e.Slot)
			}
			most = max(most, now)
		}
		return nil
	})
	return n, most
}
