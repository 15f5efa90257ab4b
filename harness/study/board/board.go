package board

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/sweep"
)

// Limits of a board, so that every page has a bounded size.
const (
	mostEntries = 256
	mostInputs  = 4096 // traces and logs
)

// Board is strategies on traces and on op logs.
type Board struct {
	Device   string        // of all results of traces; empty: there are none
	FreeAt   replay.FreeAt // of all results of traces
	Settings grid.Settings // of all results of logs
	Traces   []Input       // by hash, then by name
	Logs     []Input       // likewise
	Entries  []*Entry      // in the order of the results, traces first
	Ignored  int           // results of other devices and searches
	Tracks   []*Track      // set by [Board.Rank]
	Seed     uint64        // of the bootstrap, set by [Board.Rank]
}

// Input is a trace or an op log.
type Input struct {
	Name       string      // in the results
	SHA256     string      // of the decompressed file; empty: generated
	Path       string      // of a log in the plan of the sweep
	Events     int         // number of them; of a log, its steps
	LowerBound device.Size // that no strategy can undercut; 0: every listed strategy failed
}

// Entry is a strategy with its settings, and on logs with a heuristic and a ladder.
type Entry struct {
	Kind      *Kind         // of its inputs
	Setup     setting.Setup // named by the results, without a forecast
	Learned   bool          // planned by an earlier run
	Heuristic string        // that chooses victims; empty on traces
	Ladder    string        // of steps after a refusal; empty on traces
	Figures   []Figure      // by input
	// Cells are the results by trace; nil is a missing one, and on logs there are none.
	Cells []*sweep.Result
	// Runs are the results by log, sorted by budget; on traces there are none.
	Runs [][]*sweep.RematResult
	// Calls are the kinds of device calls that the probes saw; see [Board.Probe].
	Calls device.CallSet
	// Unlisted is why no track lists the entry; empty: tracks do.
	Unlisted string
}

// Figure is the result of an entry on an input.
type Figure struct {
	Bytes device.Size // minimum capacity, or the smallest budget tried that suffices; 0: it failed
	Cost  *float64    // device calls, or the time within that budget; nil: unknown
}

// Name returns the name of the entry in words.
func (e *Entry) Name() string {
	name := e.Setup.Name
	if e.Heuristic != "" {
		name += " by " + e.Heuristic
	}
	if e.Ladder != "" && e.Ladder != grid.Evict {
		name += " with " + e.Ladder
	}
	return name
}

// Reference reports whether the entry is drawn and never ranked.
func (e *Entry) Reference() bool { return e.Setup.Baseline || e.Counting() }

// Counting reports whether the entry is the memory that only counts bytes, which is no strategy.
func (e *Entry) Counting() bool { return e.Setup.Name == grid.Counting }

var errNoResults = errors.New("no result of the search \"minimum\"")

// Collect groups the results of logs, and of traces on a device, "" for the only one. Results of
// traces by other searches than [sweep.Minimum] are ignored.
func Collect(results sweep.Results, on string, c setting.Catalogue) (*Board, error) {
	b := &Board{Device: on}
	kept, err := b.keep(results.Traces)
	if err == nil && len(kept) == 0 && len(results.Logs) == 0 {
		err = errNoResults
	}
	if err == nil {
		err = b.collectTraces(kept, c)
	}
	if err == nil {
		err = b.collectLogs(results.Logs, c)
	}
	if err != nil {
		return nil, err
	}
	if inputs := len(b.Traces) + len(b.Logs); len(b.Entries) > mostEntries || inputs > mostInputs {
		return nil, fmt.Errorf("%d strategies on %d traces and logs: want at most %d on %d", len(b.Entries), inputs,
			mostEntries, mostInputs)
	}
	return b, nil
}

// keep returns the results of the board's device by the search for the minimum.
func (b *Board) keep(results []sweep.Result) (kept []sweep.Result, err error) {
	for i := range results {
		r := &results[i]
		if r.Search != sweep.Minimum || b.Device != "" && r.Target != b.Device {
			b.Ignored++
			continue
		}
		kept = append(kept, *r)
	}
	if len(kept) == 0 {
		if b.Device != "" {
			return nil, fmt.Errorf("%w on the device %q", errNoResults, b.Device)
		}
		return nil, nil
	}
	b.Device, b.FreeAt = kept[0].Target, kept[0].FreeAt
	for i := range kept {
		r := &kept[i]
		if r.Target != b.Device {
			return nil, fmt.Errorf("results on the devices %q and %q: choose one with --device", b.Device, r.Target)
		}
		if r.FreeAt != b.FreeAt {
			return nil, fmt.Errorf("results with free_at %q and %q: want one of them", b.FreeAt, r.FreeAt)
		}
	}
	return kept, nil
}

// inputs returns the inputs of n rows, and the index of each row's.
func inputs(n int, row func(i int) Input) (all []Input, place []int) {
	identity := func(in Input) string { return cmp.Or(in.SHA256, "name "+in.Name) }
	found := map[string]*Input{}
	var names []string
	for i := range n {
		in := row(i)
		id := identity(in)
		old := found[id]
		switch {
		case old == nil:
			found[id] = &in
			names = append(names, id)
		case old.LowerBound == 0 || in.LowerBound > 0 && in.LowerBound < old.LowerBound:
			old.LowerBound = in.LowerBound
		}
	}
	slices.Sort(names)
	for _, id := range names {
		all = append(all, *found[id])
	}
	for i := range n {
		at, _ := slices.BinarySearch(names, identity(row(i)))
		place = append(place, at)
	}
	return all, place
}

// collectTraces sets the traces and their entries.
func (b *Board) collectTraces(results []sweep.Result, c setting.Catalogue) error {
	all, place := inputs(len(results), func(i int) Input {
		r := &results[i]
		return Input{Name: r.Trace, SHA256: r.TraceSHA256, Events: r.Events, LowerBound: r.LowerBound}
	})
	b.Traces = all
	entries := map[string]*Entry{}
	for i := range results {
		r := &results[i]
		key := fmt.Sprint(r.Strategy, "\x00", string(r.Config), "\x00", r.Learn != "")
		e := entries[key]
		if e == nil {
			setup, err := sweep.Lookup(c, r.Strategy, r.Config)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", r.Strategy, r.Trace, err)
			}
			e = &Entry{Kind: OnTraces, Setup: setup, Learned: r.Learn != "", Cells: make([]*sweep.Result, len(all)),
				Figures: make([]Figure, len(all))}
			entries[key] = e
			b.Entries = append(b.Entries, e)
		}
		at := place[i]
		if old := e.Cells[at]; old != nil && old.Cell != r.Cell {
			return twice(e, r.Trace, old.Cell, r.Cell)
		}
		e.Cells[at], e.Figures[at] = r, figureOf(r)
		e.outdated(r.Semantics)
	}
	for _, e := range b.Entries {
		var missing []string
		for i, r := range e.Cells {
			if r == nil {
				missing = append(missing, all[i].Name)
			}
		}
		e.lacks(missing)
	}
	return nil
}

// figureOf returns the figure of a result.
func figureOf(r *sweep.Result) (f Figure) {
	if r.Failed != "" {
		return f
	}
	if r.MinCapacity != nil {
		f.Bytes = *r.MinCapacity
	}
	if r.Completed {
		f.Cost = new(float64(r.DeviceCalls))
	}
	return f
}

// twice returns the error about two results where one is expected.
func twice(e *Entry, on, x, y string) error {
	return fmt.Errorf("two results of %s on %s: cells %.12s and %.12s", e.Name(), on, x, y)
}

// Unlisted returns the entries that no track lists.
func (b *Board) Unlisted() (all []*Entry) {
	for _, e := range b.Entries {
		if e.Unlisted != "" {
			all = append(all, e)
		}
	}
	return all
}

// outdated sets why an entry with a result of a version of its placements is not listed.
func (e *Entry) outdated(version string) {
	if version != e.Setup.Semantics {
		e.Unlisted = fmt.Sprintf("its results are of version %s of its placements, and this program has %s", version,
			e.Setup.Semantics)
	}
}

// lacks sets why an entry without some results is not listed.
func (e *Entry) lacks(missing []string) {
	if len(missing) > 0 && e.Unlisted == "" {
		e.Unlisted = "no result on " + strings.Join(missing, ", ")
	}
}

// Multiple returns the bytes of the entry on an input as a multiple of its lower bound, infinity
// for a failure.
func (e *Entry) Multiple(input int, bound device.Size) float64 {
	f := e.Figures[input]
	if f.Bytes == 0 || bound == 0 {
		return math.Inf(1)
	}
	return float64(f.Bytes) / float64(bound)
}
