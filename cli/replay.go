package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/props"
)

type replayFlags struct {
	deviceFlags
	strategy, config      string
	named                 strategyArg   // --strategy and --config
	setup                 setting.Setup // of the named strategy
	source                formats.Options
	files                 outputs
	freeAt                string
	at, threads, history  int
	address               string
	retry                 time.Duration
	waits                 *replay.Waits // nil without --retry
	check, contents, stop bool
	failOnOOM             bool

	recordings
	basis   []string            // properties taken from the recorded run, as sentences
	verdict *postmortem.Verdict // nil unless the first OOM is to be explained

	unplaced error // why the file of placements could not be written
}

func newReplay(catalogue setting.Catalogue) *cobra.Command {
	f := replayFlags{recordings: recordings{catalogue: catalogue}}
	c := &cobra.Command{
		Use:   "replay --strategy NAME [flags] TRACE",
		Short: "Replay one trace through one strategy and show every figure",
		Long: `Replay one trace through one strategy on a simulated GPU, or on a real one with --device cuda:0.

A TRACE is a file of any format in docs/traces.md, "-" for standard input, or the name
of a trace inside the program.

With --check, the invariants of docs/invariants.md are checked after every event. The first
violation ends the replay with exit status 1, and so does a call that panics or does not
return within 10 seconds. A trace that "vramyard check" wrote repeats its failure this way: its header has
the configuration and the device, which --config, --device and --sim override.

With --contents, the trace is first replayed on a device that stores the contents of its memory:
every block is filled with a unique pattern, and compared when it is freed and at the end. An
overlap ends the replay with exit status 1. The figures are of replays without the comparison.

If the file is a recording of PyTorch, --strategy caching without --config replays with the recorded
settings; --config '{}' is the preset. The device has the size of the recorded card, if the file shows
it, unless --device or --sim is given.

With --stop-at-oom, the replay ends at the first request that finds no memory, as a program that
dies of it. A snapshot of the replay then ends with the failed request, as PyTorch's does.

With --fail-on-oom, the exit status is 1 if a request is not granted. Without it, such a replay is an
ordinary result whose first line says FAILED.

--explain shows why the first request found no memory, the owners of regions that are partly free,
and the few blocks that stood in the way; docs/metrics.md defines every figure.

With --retry, the trace is replayed once more by its threads: a request that finds no memory waits
for a free by another thread, as TensorFlow's allocator does, and the later requests and frees of its
own thread wait behind it. A block is freed by the thread that requested it. Waits are measured in
the time of the trace, so that the result is the same on every machine.

--memory-map, --bins and --chunks show the strategy at one moment: after the event of --at, or else
after the first request that finds no memory, or at the end. The page of --html has that event among
its instants. --address shows one block and its
neighbors, with the answers to TensorFlow's queries: requested and allocated size, allocation ID and
owner. TensorFlow writes the file of --memory-map at a failure if
TF_BFC_MEMORY_DUMP is set. It is read back as a trace.

--snapshot and --perfetto write every event, block by block, for third-party viewers; docs/export.md
describes how to open them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	c.Flags().StringVar(&f.strategy, "strategy", "", "strategy, "+oneNamedUsage)
	addConfig(c, &f.config, "settings as a JSON object; they replace the preset's")
	f.addPlace(c, "its capacity bounds the replay")
	f.addSim(c, "settings of the simulated device, as a JSON object; the default is "+defaultDevice())
	addSource(c, &f.source)
	f.files.add(c, "placements", `write the address of each allocation to this file, "-" for standard output`).text = true
	f.files.add(c, "final", `write the final state to this file, "-" for standard output`).text = true
	f.files.add(c, "oom-report",
		`write the report about the first OOM, and the strategy's own if it writes one, to this file, "-" for standard output`).text = true
	f.files.add(c, "curve",
		`write the memory after each event to this file: CSV, Parquet or NumPy's .npy by its ending, "-" for standard output`)
	explain := f.files.add(c, "explain",
		`write why the first request found no memory to this file, as JSON if it ends in .json, "-" for standard output`)
	explain.text, explain.words, explain.fill = true, true, f.writeExplained
	f.files.addFigures(c, "the table")
	f.addMoment(c)
	f.addRetry(c)
	f.addExports(c)
	f.files.addHTML(c)
	addFreeAt(c, &f.freeAt)
	c.Flags().BoolVar(&f.check, "check", false, "check every invariant after every event")
	c.Flags().BoolVar(&f.contents, "contents", false, "fill and compare the memory of every block")
	c.Flags().BoolVar(&f.stop, "stop-at-oom", false, "end at the first request that finds no memory")
	c.Flags().BoolVar(&f.failOnOOM, "fail-on-oom", false, "exit with status 1 if a request is not granted")
	c.MarkFlagsMutuallyExclusive("check", "stop-at-oom")
	mustHave(c, "strategy")
	return c
}

// judge validates the flags before anything is read.
func (f *replayFlags) judge(path string) error {
	if err := f.files.check(path); err != nil {
		return err
	}
	var err error
	if f.named, err = strategyOf(f.strategy, f.config); err != nil {
		return err
	}
	if f.setup, err = f.named.lookup(f.catalogue, "strategy", f.config); err != nil {
		return err
	}
	if f.named.config != f.config {
		f.setup.Name = f.named.String()
	}
	if err := errors.Join(f.judgeMoment(), f.judgeRetry()); err != nil {
		return err
	}
	return f.checkExports()
}

// run executes the command. The trace is replayed three times: for the figures and files, then for
// the time, then for the latency of single calls, which would distort the time of the whole. Both
// timed replays find the machine warm and do the same work except for latencies, so that the
// difference is the cost of measuring them.
func (f *replayFlags) run(cmd *cobra.Command, path string) error {
	if err := f.judge(path); err != nil {
		return err
	}
	t, err := f.open(cmd, path)
	if err != nil {
		return err
	}
	setup, on, err := f.settings(t)
	if err != nil {
		return err
	}
	if err := f.onlySimulated(on); err != nil {
		return err
	}
	cfg := on.Config // of the simulated device beside a GPU
	o := replay.Options{Figures: true, StopAtOOM: f.stop}
	if o.FreeAt, err = parseFreeAt(f.freeAt); err != nil {
		return err
	}
	ctx, done := untilInterrupt(cmd)
	defer done()
	watch := func(what string) func(int) error {
		p := begin(cmd, stage{what: what, unit: "events"})
		return func(events int) error {
			p.reached(int64(events), int64(t.Head().Events))
			return ctx.Err()
		}
	}
	begin(cmd, stage{what: "preparing"})
	prepared, err := replay.Prepare(cmd.Context(), t)
	if err != nil {
		return err
	}
	o.Watch = watch("proving")
	if err := f.prove(prepared, t, setup, on, o); err != nil {
		return err
	}
	if err := f.record(t, setup, cfg, export.Options{FreeAt: o.FreeAt, StopAtOOM: f.stop,
		Watch: watch("recording")}); err != nil {
		return err
	}
	if err := f.explain(prepared, f.allocationStacks[t], setup, cfg, o.FreeAt, watch("explaining")); err != nil {
		return err
	}
	o.Watch = watch("taking the state")
	err = errors.Join(f.takeState(prepared, t, setup, cfg, o), f.takeCurve(prepared, t, setup, on, o),
		f.waitFor(t, setup, cfg))
	if err != nil {
		return err
	}
	o.Watch = watch("replaying")
	res, final, err := f.watched(cmd.OutOrStdout(), prepared, setup, on, o)
	if err != nil {
		return err
	}
	res.Provenance, res.Waits = provenance.Read(), f.waits
	if f.verdict != nil && f.verdict.Outcome == postmortem.Refused {
		f.verdict.Failures = max(int(res.OOMs), 1)
	}
	err = f.time(res, prepared, setup, on, o, watch)
	done()
	if errors.Is(err, context.Canceled) {
		return f.files.finished(cmd.OutOrStdout(), "the times are of the first replay, which also took the figures",
			func(w io.Writer) error { return report.ReplayText(w, res) })
	}
	if err != nil {
		return err
	}
	f.fill(res, final)
	f.files.page(cmd, []string{path}, func() (*page.Report, error) {
		return f.draw(cmd, prepared, f.allocationStacks[t], setup, cfg, res, o.FreeAt)
	})
	err = errors.Join(f.unplaced, f.files.write(cmd.OutOrStdout(), func(w io.Writer) error { return f.show(w, res) }))
	if failed := report.ReplayFailure(res); f.failOnOOM && failed != "" {
		err = errors.Join(err, failure{fmt.Errorf("%s on %s: %s", setup.Name, res.Trace, failed)})
	}
	return err
}

// time measures the time, and then the latencies.
func (f *replayFlags) time(
	res *replay.Result, p *replay.Prepared, setup setting.Setup, on replay.Target, o replay.Options,
	watch func(what string) func(int) error,
) error {
	o.Watch = watch("timing")
	timed, err := runOn(p, setup, on, o)
	if err != nil {
		return err
	}
	if timed.Referenced {
		o.ByRef, o.Watch = true, watch("timing by reference")
		byRef, err := runOn(p, setup, on, o)
		if err != nil {
			return err
		}
		res.NsPerOpByRef, o.ByRef = &byRef.NsPerOp, false
	}
	o.Latency, o.Watch = true, watch("timing calls")
	called, err := runOn(p, setup, on, o)
	if err != nil {
		return err
	}
	res.NsPerOp, res.Latency = timed.NsPerOp, called.Latency
	return nil
}

func (f *replayFlags) draw(
	cmd *cobra.Command, p *replay.Prepared, stacks *postmortem.Stacks, setup setting.Setup, cfg sim.Config,
	res *replay.Result, at replay.FreeAt,
) (*page.Report, error) {
	figures := *res
	figures.Series = nil // the page has its own
	o := page.Budget(1)
	if o.FreeAt, o.StopAtOOM = at, f.stop; f.at >= 0 {
		o.Events = []int{f.at}
	}
	run := drawing{setup: setup, color: colors(f.catalogue)(setup.Name), device: cfg, figures: &figures,
		latency: res.Latency}
	drawn, err := draw(cmd, p, stacks, []drawing{run}, o)
	return &page.Report{
		Kind: "replay", Title: setup.Name + " on " + units.Printable(res.Trace),
		Sheets: []report.Sheet{report.ReplaySheet(res)}, Traces: []page.Traced{drawn},
	}, err
}

// open opens the trace. Checks after every event need all of it in memory.
func (f *replayFlags) open(cmd *cobra.Command, path string) (trace.Source, error) {
	if f.files.wanted("html") || f.files.wanted("explain") || f.files.wanted("chunks") {
		f.allocationStacks = allocationStacks{}
	}
	f.family = func(name string) bool { return f.named == strategyArg{name: name} }
	f.whole = f.check || f.retry > 0
	return f.recordings.open(path, reading(cmd, path, f.source), cmd.InOrStdin())
}

// settings returns strategy and device of the flags. Without flags they are taken from the recorded
// run, or with --check from the header of a counterexample.
func (f *replayFlags) settings(t trace.Source) (setting.Setup, replay.Target, error) {
	h := t.Head().Header
	setup, on := f.setup, f.deviceFlags
	// Traces recorded elsewhere may have such keys too and mean something else by them.
	if _, counterexample := h.Get("invariant"); f.check && counterexample {
		if text, ok := h.Get("config"); ok && f.named.config == "" {
			var err error
			if setup, err = f.catalogue.Lookup(f.named.name, json.RawMessage(text)); err != nil {
				return setting.Setup{}, replay.Target{}, fmt.Errorf("%s: header: %w", h.Name, err)
			}
		}
		if text, ok := h.Get("device"); ok && on == (deviceFlags{}) {
			on.sim = spec{value: text, given: true, exact: true}
		}
	}
	at, err := on.place()
	if err != nil && on != f.deviceFlags {
		err = fmt.Errorf("%s: header: %w", h.Name, errors.Unwrap(err))
	}
	own := f.runs[t]
	if own.Setup.Name != "" {
		setup = own.Setup
		config, err := json.Marshal(setup.Config)
		if err != nil {
			return setup, at, err
		}
		f.basis = append(f.basis, fmt.Sprintf("settings as recorded: %s", config))
	}
	if own.Card > 0 && on == (deviceFlags{}) {
		at.Capacity = own.Card
		f.basis = append(f.basis, fmt.Sprintf("device: %s, the card of the recording", units.Bytes(own.Card)))
	}
	return setup, at, err
}

// onlySimulated refuses flags that need a simulated device.
func (f *replayFlags) onlySimulated(on replay.Target) error {
	check, retry := &output{flag: "check"}, &output{flag: "retry"}
	if f.check {
		check.path = "yes"
	}
	if f.retry > 0 {
		retry.path = "yes"
	}
	return onlySimulated(on, f.files.of("memory-map"), f.files.of("bins"), f.files.of("chunks"), f.files.of("snapshot"),
		f.files.of("perfetto"), f.files.of("explain"), f.files.of("html"), check, retry)
}

// sampling is the interval between two queries of a GPU's memory in use.
const sampling = time.Millisecond

// watched replays while the driver of a GPU is polled for the memory in use.
func (f *replayFlags) watched(
	stdout io.Writer, t *replay.Prepared, setup setting.Setup, on replay.Target, o replay.Options,
) (res *replay.Result, final []byte, err error) {
	stop, err := on.Watch(sampling)
	if err != nil {
		return nil, nil, err
	}
	res, final, err = f.replay(stdout, t, setup, on, o)
	seen, failed := stop()
	if err == nil {
		err = failed
	}
	if err == nil {
		used := on.Used(on.Capacity)
		res.Device, res.Driver = &used, seen
	}
	return res, final, err
}

// replay runs the trace and writes the placements. It returns the figures and the text of
// the final state.
func (f *replayFlags) replay(
	stdout io.Writer, t *replay.Prepared, setup setting.Setup, on replay.Target, o replay.Options,
) (res *replay.Result, final []byte, err error) {
	var state bytes.Buffer
	o.Report = true
	if f.files.wanted("final") {
		o.Final = &state
	}
	placements := f.files.of("placements").path
	if placements == "" {
		res, err = runOn(t, setup, on, o)
		return res, state.Bytes(), err
	}
	err = fileio.Write(placements, document(stdout), func(w io.Writer) error {
		to := &latch{Writer: w}
		o.Placements = to
		done, err := runOn(t, setup, on, o)
		if err != nil {
			return err
		}
		res = done
		return to.err
	})
	if res != nil && placements != "-" { // the figures are kept without the file
		f.unplaced, err = err, nil
	}
	return res, state.Bytes(), err
}

// fill sets the contents of the files that are written after the replay.
func (f *replayFlags) fill(res *replay.Result, final []byte) {
	f.files.of("final").fill = func(w io.Writer) error {
		_, err := w.Write(final)
		return err
	}
	f.files.of("oom-report").fill = func(w io.Writer) error { return writeFirstOOM(w, res) }
	f.files.figures(res, report.ReplayTable(res))
}

func (f *replayFlags) show(w io.Writer, res *replay.Result) error {
	err := report.ReplayText(w, res)
	for _, line := range f.basis {
		if err == nil {
			_, err = fmt.Fprintln(w, line)
		}
	}
	if err == nil && res.Waits != nil {
		err = writeWaits(w, res.Waits)
	}
	if err == nil && f.check {
		_, err = fmt.Fprintf(w, "every invariant held after each of %d events\n", res.Events)
	}
	if err == nil && f.contents {
		_, err = fmt.Fprintf(w, "every block kept its contents through %d events\n", res.Replayed)
	}
	return err
}

// prove replays for --check and --contents, without measurements.
func (f *replayFlags) prove(p *replay.Prepared, src trace.Source, setup setting.Setup, on replay.Target,
	o replay.Options) error {
	if f.contents {
		on.Memory = sim.Filled // of a simulated device
	}
	switch {
	case f.check:
		return checkReplay(p, src.(*trace.Trace), setup, on.Config, o) // open has read all of it
	case f.contents:
		dev, err := on.Open()
		if err != nil {
			return err
		}
		contents, _ := device.ContentsOf(dev) // such devices have contents
		_, err = p.Run(setup, dev, replay.Options{FreeAt: o.FreeAt, StopAtOOM: o.StopAtOOM, Contents: contents,
			Watch: o.Watch})
		if _, ok := errors.AsType[*wrap.Corruption](err); ok {
			err = failure{err}
		}
		return errors.Join(err, dev.Close())
	}
	return nil
}

// writeFirstOOM writes the report about the first OOM: the lines of every strategy, then the
// strategy's own text.
func writeFirstOOM(w io.Writer, res *replay.Result) error {
	text := []byte("no request ran out of memory\n")
	if res.OOMs > 0 {
		text = slices.Concat(res.OOMReport, res.OwnOOMReport)
	}
	_, err := w.Write(text)
	return err
}

// checkReplay replays with a judge and a watchdog. Its error names the event at which an invariant
// was broken, or which did not return.
func checkReplay(p *replay.Prepared, t *trace.Trace, setup setting.Setup, cfg sim.Config, o replay.Options) error {
	judge, err := props.NewJudge(props.SubjectOfSetup(setup, cfg), t)
	if err != nil {
		return err
	}
	var at atomic.Int64 // the present event: the replay may go on in its goroutine when the watchdog has ended
	at.Store(-1)
	err = props.Guarded(0, func(beat func()) error {
		_, err := p.Run(setup, judge.Device(), replay.Options{FreeAt: o.FreeAt, Watch: o.Watch,
			Contents: judge.Contents(), Observe: func(o replay.Observation) error {
				beat()
				at.Store(int64(o.Event))
				err := judge.Observe(o)
				if err == nil && !o.Continues(t.Events) {
					at.Add(1)
				}
				return err
			}})
		return err
	})
	v, ok := errors.AsType[*props.Violation](err)
	if !ok {
		return err
	}
	place := fmt.Sprintf("event %d", at.Load())
	switch at.Load() {
	case -1:
		place = "before the first event"
	case int64(len(t.Events)):
		place = "at the end"
	}
	return failure{fmt.Errorf("%s on %s: %s: %v (%s): %s", setup.Name, t.Header.Name, place, v.Number,
		v.Number.Name(), v.Detail)}
}

// runOn replays over a fresh device.
func runOn(t *replay.Prepared, setup setting.Setup, on replay.Target, o replay.Options) (*replay.Result, error) {
	dev, err := on.Open()
	if err != nil {
		return nil, err
	}
	res, err := t.Run(setup, dev, o)
	if failed := dev.Close(); err == nil {
		err = failed
	}
	return res, err
}
