package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	extremes      bool
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
		"end the program after so many `steps` of its optimizers; 0: at its end")
	c.Flags().BoolVar(&f.o.FastInit, "fast-init", false,
		"leave out the initialization of parameters, whose values do not matter")
	c.Flags().StringVar(&f.context, "context", "500MiB", "`size` of the memory that CUDA's context and libraries take")
	c.Flags().StringVar(&f.keep, "values", "1MiB",
		"keep the contents of copies up to this `size`; larger ones read as zeros")
	c.Flags().StringVar(&f.cudnn, "cudnn", "none",
		"`policy` for the work areas of cuDNN: none, bound=SIZE for each call, or table=FILE")
	c.Flags().StringVar(&f.os, "os", "linux",
		"`system` whose order of addresses decides between equal segments: linux (falling) or wsl (rising)")
	c.Flags().BoolVar(&f.extremes, "extremes", false,
		"if blocks wait for other streams, run the program again with events that complete as late as possible")
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
	if room := f.o.Shape().Capacity; f.o.CuDNN.Bound >= room {
		return flagError("cudnn", fmt.Errorf("bound=%s: want less than the %s of the device that CUDA's context leaves",
			units.Bytes(f.o.CuDNN.Bound), units.Bytes(room)))
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
	atOnce, err := f.launch(cmd, dir)
	if err != nil {
		return err
	}
	if !f.extremes || !atOnce.matters() {
		return f.answer(cmd, atOnce, nil)
	}
	tell(cmd.ErrOrStderr(), "vramyard: running the program again, with events that complete only when it waits for them")
	dir = filepath.Join(dir, "late")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	f.o.Lazy = true
	late, err := f.launch(cmd, dir)
	if err != nil {
		return err
	}
	return f.answer(cmd, atOnce, late)
}

func (f *runFlags) launch(cmd *cobra.Command, dir string) (*outcome, error) {
	ctx, done := untilInterrupt(cmd)
	defer done()
	out, err := launch.Run(ctx, dir, f.o)
	return &outcome{out}, err
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

// answer reports the outcome of a run, or of the one of two runs that needs more memory.
func (f *runFlags) answer(cmd *cobra.Command, atOnce, late *outcome) error {
	out := atOnce
	if late != nil && (late.Status != 0 || late.together() > atOnce.together()) {
		out = late
	}
	if err := f.unrecorded(out); err != nil {
		return err
	}
	p := out.Processes[0]
	f.search.release, _, _ = strings.Cut(out.Torch.Torch, "+")
	w, rec, err := f.search.open(cmd, p.Snapshot)
	if err != nil {
		return err
	}
	grid, err := f.search.readGrid()
	if err != nil {
		return err
	}
	o := whatif.Options{Device: f.o.Shape(), Context: f.o.Context + out.others(), Memory: heapLeft()}
	o.Card, o.Device.Capacity = o.Device.Capacity-out.others(), 0
	ctx, done := untilInterrupt(cmd)
	defer done()
	r, err := whatif.Search(ctx, w, rec, grid, o)
	if r == nil {
		return err
	}
	a := f.answerOf(out, atOnce, late)
	if err == nil {
		if err := f.ranges(ctx, a, out, w, rec, o); err != nil {
			return err
		}
	}
	if err := a.findHolders(cmd, p.Snapshot); err != nil {
		return err
	}
	f.search.files.figures(runResult{r, a}, whatif.Table(r))
	f.search.files.of("snapshot").fill = func(w io.Writer) error { return copyFrom(w, p.Snapshot) }
	f.search.files.page(cmd, f.o.Command, func() (*page.Report, error) {
		report, err := f.search.page(cmd, w, r)
		if err == nil {
			report.Texts = append([]page.Text{{Title: "Run", Body: a.String()}}, report.Texts...)
			report.More["run"] = a
		}
		return report, err
	})
	what := fmt.Sprintf("settings tried: %d", r.Points)
	err = f.search.files.conclude(cmd, err, true, what, func(to io.Writer) error {
		if _, err := io.WriteString(to, a.String()); err != nil {
			return err
		}
		return report.WhatIf(to, r)
	})
	switch {
	case err != nil:
		return err
	case out.exhausted():
		return failure{errors.New("the program ran out of memory")}
	case out.Status != 0:
		return fmt.Errorf("the program ended with status %d", out.Status)
	}
	return nil
}

// runResult is the result of a run in JSON: that of whatif, and what the run adds.
type runResult struct {
	*whatif.Result
	Run *runAnswer `json:"run"`
}

// mostHolders bounds the holders that are named; "vramyard top" lists all.
const mostHolders = 3

// findHolders finds the call sites with the most memory at the peak of live bytes.
func (a *runAnswer) findHolders(cmd *cobra.Command, snapshot string) error {
	stacks := allocationStacks{}
	src, err := stacks.open(snapshot, reading(cmd, snapshot, formats.Options{}), cmd.InOrStdin())
	if err != nil {
		return err
	}
	r, err := topOf(src, stacks[src])
	if err == nil {
		a.Live, a.Holders = r.Peak.Bytes, r.Peak.Holders[:min(mostHolders, len(r.Peak.Holders))]
	}
	return err
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
