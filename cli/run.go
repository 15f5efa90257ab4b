package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/device/standin"
	"github.com/vramyard/vramyard/harness/launch"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/units"
)

type runFlags struct {
	search        whatifFlags
	o             launch.Options
	context, keep string
	cudnn, os     string
	allocator     string
}

func newRun(catalogue setting.Catalogue) *cobra.Command {
	f := runFlags{search: whatifFlags{catalogue: catalogue, grid: gridQuick}}
	c := &cobra.Command{
		Use:   "run --device sim:CARD -- PROGRAM [ARGUMENT...]",
		Short: "Run a PyTorch program on a simulated GPU, without a GPU",
		Long: `Run an unmodified Python program on the CUDA build of PyTorch that its interpreter has, over a
simulated GPU, and report whether it fits, who holds its memory, the smallest card and the best setting.

PyTorch's own allocator, or the strategy of --allocator, makes every decision, and reports that memory is exhausted as
on a GPU. Kernels do nothing: values that the program computes read as zeros. docs/without-gpu.md says how it works
and what it cannot do.

PROGRAM is a Python interpreter or a script whose first line names one. It needs Linux and PyTorch's CUDA build, but
no library of NVIDIA's, and a C++ compiler unless stand-ins for this PyTorch are prebuilt. The exit status is 1 if the
memory was too small.`,
		Example: "  vramyard run --device sim:h100-80g -- python train.py\n" +
			"  vramyard run --device sim:l4-24g --until-step 3 -- python train.py --batch 64\n" +
			"  vramyard run --device sim:l4-24g --allocator bfc:growth -- python train.py",
		Args: cobra.MinimumNArgs(1),
		RunE: f.run,
	}
	f.search.addDevice(c, "the GPU that the program sees")
	c.Flags().StringVar(&f.o.Conf, "conf", "", "`settings` of PyTorch's allocator, as in PYTORCH_ALLOC_CONF")
	c.Flags().StringVar(&f.allocator, "allocator", "",
		"let PyTorch allocate through this `strategy` instead of its own allocator, "+oneNamedUsage)
	c.Flags().IntVar(&f.o.Steps, "until-step", 0,
		"end the program after so many `steps` of its optimizer; 0: at its end")
	c.Flags().BoolVar(&f.o.FastInit, "fast-init", false,
		"leave out the initialization of parameters, whose values do not matter")
	c.Flags().StringVar(&f.context, "context", "500MiB", "`size` of the memory that CUDA's context and libraries take")
	c.Flags().StringVar(&f.keep, "values", "1MiB",
		"keep the contents of copies up to this `size`; larger ones read as zeros")
	c.Flags().StringVar(&f.cudnn, "cudnn", "none",
		"`policy` for the work areas of cuDNN: none, bound=SIZE for each call, or table=FILE")
	c.Flags().StringVar(&f.os, "os", "linux",
		"`system` whose order of addresses decides between equal segments: linux (falling) or wsl (rising)")
	c.Flags().BoolVar(&f.o.Lazy, "lazy-events", false,
		"complete an event only when the program waits for it; otherwise it is complete at once")
	c.Flags().BoolVar(&f.o.Strict, "strict", false, "end the program at a call of CUDA that is not modelled")
	f.search.files.addFigures(c, "text")
	f.search.files.addHTML(c)
	f.search.files.add(c, "snapshot",
		"also write PyTorch's memory snapshot, or the trace of --allocator, to this file, for the other commands")
	return c
}

// errNoDevice asks for the device of a run.
var errNoDevice = errors.New("want a card or a size, such as sim:h100-80g or sim:24GiB")

func (f *runFlags) run(cmd *cobra.Command, command []string) error {
	if err := f.search.files.check(); err != nil {
		return err
	}
	var err error
	if f.o.Device, err = f.search.config(); err != nil {
		return err
	}
	if f.o.Device.Capacity == 0 {
		return flagError("device", errNoDevice)
	}
	if f.o.Context, err = device.ParseSize(f.context); err != nil {
		return flagError("context", err)
	}
	if f.o.Context >= f.o.Device.Capacity {
		return flagError("context", fmt.Errorf("want less than the %s of the device", units.Bytes(f.o.Device.Capacity)))
	}
	if f.o.Steps < 0 {
		return flagError("until-step", errors.New("want 0 or more"))
	}
	if f.o.Keep, err = device.ParseSize(f.keep); err != nil {
		return flagError("values", err)
	}
	if f.o.CuDNN, err = launch.ParseWorkAreas(f.cudnn); err != nil {
		return flagError("cudnn", err)
	}
	if f.o.Policy = map[string]sim.Policy{"linux": sim.TopDown, "wsl": sim.FirstFit}[f.os]; f.o.Policy == "" {
		return flagError("os", fmt.Errorf("%q: want linux or wsl", f.os))
	}
	if f.o.Allocator, err = f.strategy(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vramyard-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // its files are the program's
	f.o.Command = command
	f.o.Stdin, f.o.Stdout, f.o.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	f.o.Watch = watcher(cmd.ErrOrStderr())
	ctx, done := untilInterrupt(cmd)
	out, err := launch.Run(ctx, dir, f.o)
	done()
	if err != nil {
		return err
	}
	return f.answer(cmd, out)
}

// errReplaced refuses settings of PyTorch's own allocator where a strategy replaces it.
var errReplaced = errors.New("sets PyTorch's own allocator, which --allocator replaces")

// strategy reads --allocator.
func (f *runFlags) strategy() (a launch.Allocator, err error) {
	switch {
	case f.allocator == "":
		return a, nil
	case f.o.Conf != "":
		return a, flagError("conf", errReplaced)
	}
	all, err := parseStrategyArgs(f.allocator)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%q: want one strategy", f.allocator)
	}
	if err != nil {
		return a, flagError("allocator", err)
	}
	_, err = all[0].lookup(f.search.catalogue, "allocator", "")
	return launch.Allocator{Strategy: all[0].name, Config: all[0].config}, err
}

// watcher returns a function that shows steps and memory while a program runs, on a terminal at
// most once a second.
func watcher(w io.Writer) func(standin.Event) {
	if lively(w) == nil {
		return nil
	}
	var last time.Time
	var step uint64
	return func(e standin.Event) {
		if e.Kind == standin.StepEnded {
			step = e.Number
		}
		if e.Kind == standin.Ended || time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		tell(w, "vramyard: step %d: %s reserved, at most %s", step+1, units.Bytes(e.Reserved), units.Bytes(e.Peak))
	}
}

// answer reports the outcome of a run.
func (f *runFlags) answer(cmd *cobra.Command, out *launch.Outcome) error {
	if len(out.Processes) == 0 || out.Processes[0].Snapshot == "" {
		return fmt.Errorf("the program ended with status %d before PyTorch used the GPU: nothing is recorded", out.Status)
	}
	p := out.Processes[0]
	capacity := f.o.Device.Capacity - min(f.o.Context, f.o.Device.Capacity)
	w, rec, err := f.search.open(cmd, p.Snapshot)
	if err != nil {
		return err
	}
	grid, err := f.search.readGrid()
	if err != nil {
		return err
	}
	shape := f.o.Device
	shape.Capacity, shape.Policy = 0, f.o.Policy
	ctx, done := untilInterrupt(cmd)
	r, err := whatif.Search(ctx, w, rec, grid, whatif.Options{
		Device: shape, Card: capacity, Memory: heapLeft(),
	})
	done()
	if r == nil {
		return err
	}
	holders, failed := f.holders(cmd, p.Snapshot)
	if failed != nil {
		return failed
	}
	f.search.files.figures(r, whatif.Table(r))
	f.search.files.of("snapshot").fill = func(w io.Writer) error { return copyFrom(w, p.Snapshot) }
	f.search.files.page(cmd, f.o.Command, func() (*page.Report, error) { return f.search.page(cmd, w, r) })
	what := fmt.Sprintf("settings tried: %d", r.Points)
	err = f.search.files.conclude(cmd, err, true, what, func(to io.Writer) error {
		if _, err := fmt.Fprintf(to, "%s\n%s\n", f.verdict(out), holders); err != nil {
			return err
		}
		return report.WhatIf(to, r)
	})
	switch {
	case err != nil:
		return err
	case p.Refused > 0 && out.Status != 0:
		return failure{errors.New("the program ran out of memory")}
	case out.Status != 0:
		return fmt.Errorf("the program ended with status %d", out.Status)
	}
	return nil
}

// mostHolders bounds the holders that are named; "vramyard top" lists all.
const mostHolders = 3

// holders names the call sites with the most memory at the peak of live bytes.
func (f *runFlags) holders(cmd *cobra.Command, snapshot string) (string, error) {
	stacks := allocationStacks{}
	src, err := stacks.open(snapshot, reading(cmd, snapshot, formats.Options{}), cmd.InOrStdin())
	if err != nil {
		return "", err
	}
	r, err := topOf(src, stacks[src])
	if err != nil || len(r.Peak.Holders) == 0 {
		return "", err
	}
	text := fmt.Sprintf("At the peak %s are live. Most of it belongs to:\n", units.Bytes(r.Peak.Bytes))
	for _, h := range r.Peak.Holders[:min(mostHolders, len(r.Peak.Holders))] {
		text += fmt.Sprintf("  %10s  %s  %s\n", units.Bytes(h.Bytes), h.Name, h.Category)
	}
	return text, nil
}

// verdict answers whether the program fits.
func (f *runFlags) verdict(out *launch.Outcome) string {
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
	if n := len(out.Processes); n > 1 {
		text += fmt.Sprintf(" Of %d processes this is the one with the highest peak.", n)
	}
	return text + "\n" + f.guesses(p.Guessed) + reads(p.Reads)
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
	return text
}

// copyFrom writes the contents of a file.
func copyFrom(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	_, err = io.Copy(w, f)
	return err
}
