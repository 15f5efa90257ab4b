package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/launch"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// outcome is the result of a run; its first process is the one that is answered about.
type outcome struct{ *launch.Outcome }

// peak returns the most bytes of one device.
func (o *outcome) peak() device.Size {
	if len(o.Processes) == 0 {
		return 0
	}
	return o.Processes[0].Peak
}

// matters reports whether the time at which events complete can change the answer.
func (o *outcome) matters() bool {
	return o.Status == 0 && slices.ContainsFunc(o.Processes, func(p *launch.Process) bool { return p.Waited })
}

// verdict answers whether the program fits.
func (f *runFlags) verdict(out *outcome) string {
	p := out.Processes[0]
	gpu := "a GPU"
	if c, ok := sim.CardOf(f.o.Device); ok {
		gpu = "the " + c.Model
	}
	where := fmt.Sprintf("%s (%s, of which CUDA's context takes %s)", gpu, units.Bytes(f.o.Device.Capacity),
		units.Bytes(f.o.Context))
	text, through := "", ""
	if name := f.o.Allocator.Strategy; name != "" {
		through = " on strategy " + name
	}
	peak := units.Bytes(p.Peak)
	switch {
	case p.Refused > 0 && out.Status != 0:
		text = fmt.Sprintf("Does not fit: in step %d PyTorch found no room for %s on %s.", p.FailedAt,
			units.Bytes(p.Asked), where)
	case out.Status != 0:
		text = fmt.Sprintf("No answer: the program ended with status %d after %s, not for lack of memory. Until then "+
			"PyTorch reserved at most %s on %s.", out.Status, units.Several(p.Steps, "step"), peak, where)
	case p.Refused > 0:
		text = fmt.Sprintf("Fits only with refusals: PyTorch refused %s on %s, and the program went on.",
			units.Several(p.Refused, "request"), where)
	default:
		text = fmt.Sprintf("Fits: PyTorch %s%s reserved at most %s on %s, in %s.", out.Torch.Torch, through, peak, where,
			units.Several(p.Steps, "step"))
	}
	switch n := len(out.Processes); {
	case n > 1 && p.Refused > 0:
		text += fmt.Sprintf(" This is one of %d processes.", n)
	case n > 1:
		text += fmt.Sprintf(" Of %d processes this is the one with the highest peak.", n)
	}
	return text + "\n" + f.guesses(p.Guessed)
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

// guesses names the calls whose work area is unknown, in one line for each kind.
func (f *runFlags) guesses(g launch.Guessed) (text string) {
	area := "a work area of " + units.Bytes(f.o.CuDNN.Bound)
	for _, k := range []struct {
		calls             uint64
		noun, area, owner string
	}{
		{g.Convolutions, "convolution", area, "cuDNN's own is"},
		{g.Recurrent, "recurrent call", area, "cuDNN's own is"},
		{g.Other, "other call", "a guessed work area", "that of cuDNN, cuSOLVER, cuSPARSE or cuFFT is"},
	} {
		if k.calls > 0 {
			text += fmt.Sprintf("%s ran with %s: %s not known (docs/without-gpu.md).\n",
				units.Several(k.calls, k.noun), k.area, k.owner)
		}
	}
	if text != "" && f.o.CuDNN.Bound == 0 {
		text += "These calls take no memory here, so the peak may be too low.\n"
	}
	return text
}

// timing says whether the time at which events complete changes the answer; late is the run in
// which they complete late, if there is one.
func (f *runFlags) timing(atOnce, late *outcome) string {
	switch {
	case late != nil && late.Status != 0:
		return fmt.Sprintf("With events that complete at once the program ended with status 0, and PyTorch reserved at most "+
			"%s. This answer is about the run with events that complete only when the program waits for them, which failed.\n",
			units.Bytes(atOnce.peak()))
	case late != nil:
		return fmt.Sprintf("With events that complete at once PyTorch reserved at most %s, and %s with events that complete "+
			"only when the program waits for them. On a GPU the peak usually lies between. This answer is about the "+
			"higher one.\n",
			units.Bytes(atOnce.peak()), units.Bytes(late.peak()))
	case atOnce.matters():
		return "Blocks that another stream uses become free as soon as the program frees them. On a GPU they become free " +
			"later, so the peak may be higher: --extremes runs the program again with the latest time.\n"
	case f.extremes && atOnce.Status == 0:
		return "The time at which events complete does not matter: no block waited for another stream.\n"
	}
	return ""
}

// ranges says how far the peak depends on guessed work areas and on the order of addresses, by
// replays of the recorded requests. They are made only if a replay of all requests has the recorded
// peak.
func (f *runFlags) ranges(
	ctx context.Context, out *outcome, w *whatif.SurveyedTrace, rec whatif.Recorded, o whatif.Options,
) (text string, err error) {
	p := out.Processes[0]
	areas := p.Areas
	if out.Status != 0 && p.Refused > 0 && len(areas.Numbers) > 0 {
		return "Guessed work areas are part of it: --cudnn none shows how far the program gets without them.\n", nil
	}
	if rec.Setup.Name == "" || out.Status != 0 || w.Refusals.Count > 0 {
		return "", nil
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
		return "", err
	}
	if len(areas.Numbers) > 0 {
		text = "The share of guessed work areas in the peak is not known: the history of the run is not complete.\n"
		if n, most := liveAreas(w, areas.Numbers); n == areas.Granted {
			text = fmt.Sprintf("At most %s of guessed work areas are live at a time, %.1f %% of the peak; a replay without "+
				"them reserves at most %s.\n", units.Bytes(most), 100*float64(most)/float64(here),
				units.Bytes(peak(trace.Without(w, areas.Numbers), o)))
		}
	}
	if low != high {
		text += fmt.Sprintf("The order of addresses matters: a replay reserves at most %s where they fall, as on Linux, and "+
			"%s where they rise, as on WSL 2.\n", units.Bytes(low), units.Bytes(high))
	}
	return text, err
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
