package cli

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/strategies/caching"
)

// grids holds the grids that are part of the program.
//
//go:embed grids/quick.yaml grids/full.yaml grids/jax.yaml grids/tensorflow.yaml
var grids embed.FS

// The values of --grid that select an embedded grid.
const (
	gridQuick = "quick"
	gridFull  = "full"
)

type whatifFlags struct {
	catalogue setting.Catalogue
	deviceFlags
	files        outputs
	store        storeFlag
	grid, freeAt string
	source       formats.Options
	workers      int
	across       bool   // compare the releases of PyTorch
	release      string // of PyTorch; "" unless the file has it
	beside       string // trace of a sleeping program on the same card; "" for none

	permit, torch, serving string // needs of the deployment
	deployment             whatif.Needs

	text   []byte             // of the grid
	marks  [][]string         // at which a setting of the grid changes, for each
	stacks *postmortem.Stacks // of the drawn runs; nil if unknown
}

func newWhatif(catalogue setting.Catalogue) *cobra.Command {
	f := whatifFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "whatif FILE",
		Short: "Find the setting or allocator that would have saved a run",
		Long: `Replay the requests of a program, refused ones included, through the settings of its framework (PyTorch,
TensorFlow or JAX) and every strategy, and report which of them would have saved the run, on how small a card, and how
certain that is.

A FILE is of any format in docs/traces.md, "-" for standard input, or the name of a trace inside the program. For a
memory snapshot of PyTorch the card is taken from the recorded failure; --device selects another one.

--grid quick tries thirty-one settings, fewer for TensorFlow and JAX, and replays the trace about thirty-five times at
most, a short one more often; an incomplete search for a minimum shows as a bracket. --grid full tries more settings and
searches every minimum. A YAML file lists your own settings; docs/whatif.md describes it.

--permit and --serving name what the deployment needs. Settings that do not work with it are left out, each with the
reason and its source.

--beside names the trace of a program that sleeps while this one runs on the same card, with pause and resume lines: the
answer is about the rest of the card.

--across-releases replays the recorded settings, and no settings, under the rules of every release of PyTorch instead,
and names the change between neighbouring releases and the first request that it affects.`,
		Example: "  vramyard whatif snapshot.pickle\n  vramyard whatif --device sim:l4-24g snapshot.pickle",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.addSearch(c)
	c.Flags().BoolVar(&f.across, "across-releases", false, "compare the rules of PyTorch's releases instead of settings")
	c.Flags().StringVar(&f.beside, "beside", "", "`trace` of a program that sleeps while this one runs on the same card")
	addPart(c, &f.source)
	return c
}

// addSearch adds the flags of a search and of its outputs.
func (f *whatifFlags) addSearch(c *cobra.Command) {
	f.addDevice(c, "its capacity is the size of the card in question")
	f.addSim(c, simShapeUsage)
	c.Flags().StringVar(&f.grid, "grid", gridQuick, `settings to try: "quick", "full", or a YAML file`)
	addFreeAt(c, &f.freeAt)
	c.Flags().Func("permit",
		"`features` that settings must work with, separated by commas, such as rdma,graphs; none: not even the file's",
		filled(&f.permit))
	c.Flags().Func("torch", "`version` of the deployment's PyTorch, such as 2.9.1; default the file's", filled(&f.torch))
	c.Flags().Func("serving", "deployed `program` that settings must work with, such as vllm-sleep", filled(&f.serving))
	c.Flags().IntVar(&f.workers, "workers", 0, "replays at once; 0 for one on each core")
	addStore(c, &f.store, "replays that are computed only once")
	f.files.addFigures(c, "text")
	f.files.addHTML(c)
}

// Errors about a need of a deployment.
var (
	errEmpty = errors.New("want a value; without this flag the file decides")
	errTwice = errors.New("given twice: want the flag once")
)

// filled returns the reader of a need of the deployment. It refuses an empty one, because the value
// of an unset variable of the shell would permit what the deployment forbids, and a second one,
// which would replace the first.
func filled(need *string) func(string) error {
	return func(text string) error {
		switch {
		case text == "":
			return errEmpty
		case *need != "":
			return errTwice
		}
		*need = text
		return nil
	}
}

// errReleasesNeeds refuses the needs of a deployment beside --across-releases.
var errReleasesNeeds = errors.New("it compares all settings and releases: want no --permit, --torch or --serving")

// errWorkers refuses a negative number of workers.
var errWorkers = errors.New("want 0 or more")

func (f *whatifFlags) run(cmd *cobra.Command, path string) error {
	if err := f.files.check(path, f.grid, f.beside); err != nil {
		return err
	}
	if err := onceFromStdin([]string{path, f.beside}); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	switch {
	case f.across && f.beside != "":
		return flagError("beside", errBesideReleases)
	case f.across && f.ownGrid():
		return flagError("grid", errReleasesGrid)
	case f.across && f.permit+f.torch+f.serving != "":
		return flagError("across-releases", errReleasesNeeds)
	}
	grid, err := f.readGrid()
	if err != nil {
		return flagError("grid", err)
	}
	w, rec, err := f.open(cmd, path)
	if err != nil {
		return err
	}
	var all []whatif.Releases
	if f.across {
		if all, err = releases(f.catalogue, &rec, w.Demand); err != nil {
			return fmt.Errorf("%s: --across-releases: %w", path, err)
		}
	} else if grid, err = f.withFramework(&rec, grid); err != nil {
		return err
	} else if f.grid == gridFull {
		grid = append(grid, f.phased(&rec, w)...)
	}
	if err := f.addBeside(cmd, &rec, &o); err != nil {
		return err
	}
	if o.Cells, err = f.store.cells(cmd, replay.SimTarget(o.Device)); err != nil {
		return err
	}
	o.Memory = heapLeft()
	p := begin(cmd, stage{what: "replaying", unit: "events"})
	o.Progress = func(done, most uint64) { p.reached(int64(done), int64(most)) }
	ctx, done := untilInterrupt(cmd)
	var r *whatif.Result
	if f.across {
		r, err = whatif.AcrossReleases(ctx, w, rec, all, o)
	} else {
		r, err = whatif.Search(ctx, w, rec, grid, o)
	}
	done()
	if r == nil {
		return err
	}
	f.files.figures(r, whatif.Table(r))
	f.files.page(cmd, []string{path}, func() (*page.Report, error) { return f.page(cmd, w, r) })
	return f.files.conclude(cmd, err, true, fmt.Sprintf("settings tried: %d", r.Points), func(w io.Writer) error {
		return report.WhatIf(w, r)
	})
}

// options returns the options of a search, without its progress and memory.
func (f *whatifFlags) options() (o whatif.Options, err error) {
	o.Workers, o.Full, o.Catalogue = f.workers, f.grid == gridFull, f.catalogue
	if f.workers < 0 {
		return o, flagError("workers", errWorkers)
	}
	if o.Device, o.Card, err = f.shape(); err != nil {
		return o, err
	}
	if !f.namesPolicy() {
		o.Device.Policy = "" // as recorded
	}
	if o.FreeAt, err = parseFreeAt(f.freeAt); err != nil {
		return o, err
	}
	f.deployment, err = f.needs()
	o.Needs = f.deployment
	return o, err
}

// needs reads the flags about the deployment.
func (f *whatifFlags) needs() (n whatif.Needs, err error) {
	if n.Features, err = whatif.ParseFeatures(f.permit); err != nil {
		return n, flagError("permit", err)
	}
	if n.Torch, err = whatif.ParseTorch(f.torch); err != nil {
		return n, flagError("torch", err)
	}
	if n.Serving, err = whatif.ParseServing(f.serving); err != nil {
		return n, flagError("serving", err)
	}
	return n, flagError("torch", n.Check(""))
}

func (f *whatifFlags) readGrid() ([]setting.Setup, error) {
	var in io.ReadCloser
	var err error
	read := whatif.ReadGrid
	switch f.grid {
	case gridQuick, gridFull:
		read = whatif.FitGrid
		in, err = grids.Open("grids/" + f.grid + ".yaml")
	case "":
		err = errors.New("want quick, full or a file")
	default:
		if in, err = os.Open(f.grid); errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%s: no such file: %swant %s, %s or a file", f.grid,
				nearest.Hint(f.grid, []string{gridQuick, gridFull}), gridQuick, gridFull)
		}
	}
	if err != nil {
		return nil, err
	}
	defer in.Close() // only read from: nothing can be lost
	var text bytes.Buffer
	setups, err := read(io.TeeReader(in, &text), f.catalogue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.grid, err)
	}
	f.text = text.Bytes()
	for _, s := range setups {
		f.marks = append(f.marks, s.Marks())
	}
	return setups, nil
}

// mostPhases bounds the phases that the full grid tries.
const mostPhases = 8

// phased returns settings of PyTorch that hold for one phase of the run: the limit that vLLM sets
// while it loads weights, and a larger one. They have the rules of the other settings.
func (f *whatifFlags) phased(rec *whatif.Recorded, w *whatif.SurveyedTrace) (all []setting.Setup) {
	if _, ok := frameworkOf(rec); ok {
		return nil
	}
	rules := recordedRules(rec, f.torch)
	for _, p := range w.Marks.Phases(mostPhases) {
		for _, sizes := range [][]int{{20, 21}, {64}} { // old releases refuse 20
			for _, mb := range sizes {
				conf := fmt.Sprintf("max_split_size_mb:%d%s", mb, caching.Phase(p[0], p[1]))
				text, _ := json.Marshal(map[string]string{"conf": conf, "rules": rules}) // texts cannot fail
				if s, err := f.catalogue.Lookup(cachingName, text); err == nil {
					all = append(all, s)
					break
				}
			}
		}
	}
	return all
}

// checkMarks returns an error if the marks at which a setting of the grid changes are missing from
// a trace, or reversed.
func (f *whatifFlags) checkMarks(path string, w *whatif.SurveyedTrace) error {
	for _, marks := range f.marks {
		if err := w.Marks.Check(marks, path); err != nil {
			return flagError("grid", fmt.Errorf("%s: %w", f.grid, err))
		}
	}
	return nil
}

// open reads the file and the recorded facts about the run. A snapshot has more of them than its
// trace.
func (f *whatifFlags) open(cmd *cobra.Command, path string) (*whatif.SurveyedTrace, whatif.Recorded, error) {
	src, of, err := openRecording(openSource, path, reading(cmd, path, f.source), cmd.InOrStdin())
	if err != nil {
		return nil, whatif.Recorded{}, err
	}
	begin(cmd, stage{what: "judging the recording"})
	w, err := whatif.Survey(src)
	if err != nil {
		return nil, whatif.Recorded{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.checkMarks(path, w); err != nil {
		return nil, whatif.Recorded{}, err
	}
	if err := whatif.CheckHeader(w.Head(), path, frameworkSettings()); err != nil {
		return nil, whatif.Recorded{}, err
	}
	rec := whatif.RecordedIn(w)
	rec.Version = cmp.Or(rec.Version, f.release)
	if of.Timeline != nil {
		rec.Add(of.Timeline)
	}
	if f.files.wanted("html") && of.Timeline != nil {
		f.stacks = of.Stacks()
	}
	release := rec.Version
	if of.Timeline == nil { // nothing shows other rules
		release = cmp.Or(release, f.torch)
	}
	unknown, err := modelRecorded(f.catalogue, &rec, of, release)
	if err != nil {
		return nil, whatif.Recorded{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkConfig(w, &rec, unknown, path); err != nil {
		return nil, whatif.Recorded{}, err
	}
	if err := f.deployment.Check(rec.Framework); err != nil {
		return nil, whatif.Recorded{}, fmt.Errorf("%s: --torch: %w", path, err)
	}
	rec.Deploy(f.deployment) // after the recorded allocator, whose version is the file's
	if err := modelFramework(f.catalogue, &rec, w.Head(), path, f.capability(&rec)); err != nil {
		return nil, whatif.Recorded{}, err
	}
	if of.Timeline != nil {
		rec.Final = of.Final()
	}
	return w, rec, nil
}

// checkConfig refuses settings of PyTorch in the header if another framework is recorded, if they
// were not understood, or if they change at marks which the trace does not have in this order. A
// recording keeps settings that are not understood: a newer release may have them.
func checkConfig(w *whatif.SurveyedTrace, rec *whatif.Recorded, unknown, path string) error {
	head := w.Head()
	i := slices.IndexFunc(head.Header.Meta, func(p trace.Pair) bool { return p.Key == torch.KeyConfig })
	if i < 0 {
		return nil
	}
	place := head.PairPlace(i, path)
	if f, ok := frameworkOf(rec); ok {
		return fmt.Errorf("%s: %w", place, f.errOther(torch.KeyConfig, "PyTorch"))
	}
	if _, recorded := head.Header.Get(torch.KeyPeak); unknown != "" && !recorded {
		return fmt.Errorf("%s: %s: %s", place, torch.KeyConfig, unknown)
	}
	if err := w.Marks.Check(rec.Setup.Marks(), "the trace"); err != nil {
		return fmt.Errorf("%s: %s: %w", place, torch.KeyConfig, err)
	}
	return nil
}

// modelRecorded finds the strategy of the recorded allocator of a release, "" if it is unknown,
// compares it with the recording, and has it explain the failure. It returns why the settings are
// not understood, "" if they are.
func modelRecorded(
	c setting.Catalogue, rec *whatif.Recorded, of *postmortem.Recording, release string,
) (unknown string, err error) {
	if len(rec.Config) == 0 {
		return "", nil
	}
	a, err := recordedAllocator(c, rec.Config, of.Timeline, release)
	if err != nil {
		return "", err
	}
	rec.Setup, of.Target, of.Promises = a.setup, a.target, a.setup.Promises
	if a.judged != nil {
		rec.Judged(a.judged)
	}
	if a.unknown != "" {
		rec.Unknown = append(rec.Unknown, whatif.UnknownSettings+": "+a.unknown)
	}
	explainRecorded(rec, of)
	if a.setup.Name != "" {
		return "", nil // other rules have them
	}
	return a.unknown, nil
}

// explainRecorded explains the last refusal by the recorded heap. If that is impossible, it notes
// the missing part of the file.
func explainRecorded(rec *whatif.Recorded, of *postmortem.Recording) {
	if of.Timeline == nil || of.Target == nil || of.Timeline.LastRefusal == nil {
		return
	}
	why, err := of.AtEntry(of.Timeline.LastRefusal.Entry)
	if err != nil {
		rec.Unknown = append(rec.Unknown, "the heap at the failure: "+err.Error())
		return
	}
	rec.Explained = why
}
