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
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/sweep"
)

// Limits of a board, so that every page has a bounded size.
const (
	mostEntries = 256
	mostTraces  = 4096
)

// Board is strategies on traces.
type Board struct {
	Device  string        // of all results
	FreeAt  replay.FreeAt // of all results
	Traces  []Trace       // by hash, then by name
	Entries []*Entry      // in the order of the results
	Ignored int           // results of other devices and searches
	Tracks  []*Track      // set by [Board.Rank]
}

// Trace is a trace of a board.
type Trace struct {
	Name       string      // in the results
	SHA256     string      // of the decompressed file; empty: generated
	Events     int         // number of them
	LowerBound device.Size // peak of live bytes as requested; 0: every strategy failed
}

// Entry is a strategy with its settings.
type Entry struct {
	Setup   setting.Setup   // named by the results, without a forecast
	Learned bool            // planned by an earlier run
	Cells   []*sweep.Result // by trace; nil: missing
	// Calls are the kinds of device calls that the probes saw; see [Board.Probe].
	Calls device.CallSet
	// Unlisted is why no track lists the entry; empty: tracks do.
	Unlisted string
}

var errNoResults = errors.New("no result of the search \"minimum\"")

// Collect groups the results of a device, "" for the only one. Results of other searches than
// [sweep.Minimum] are ignored.
func Collect(results []sweep.Result, on string, c setting.Catalogue) (*Board, error) {
	b := &Board{Device: on}
	kept, err := b.keep(results)
	if err != nil {
		return nil, err
	}
	place := b.placeTraces(kept)
	entries := map[string]*Entry{}
	for i := range kept {
		r := &kept[i]
		key := fmt.Sprint(r.Strategy, "\x00", string(r.Config), "\x00", r.Learn != "")
		e := entries[key]
		if e == nil {
			if e, err = newEntry(r, c, len(b.Traces)); err != nil {
				return nil, err
			}
			entries[key] = e
			b.Entries = append(b.Entries, e)
		}
		at := place[identity(r)]
		if old := e.Cells[at]; old != nil && old.Cell != r.Cell {
			return nil, fmt.Errorf("two results of %s on %s: cells %.12s and %.12s", e.Setup.Name, r.Trace, old.Cell, r.Cell)
		}
		e.Cells[at] = r
	}
	if len(b.Entries) > mostEntries || len(b.Traces) > mostTraces {
		return nil, fmt.Errorf("%d strategies on %d traces: want at most %d on %d", len(b.Entries), len(b.Traces),
			mostEntries, mostTraces)
	}
	for _, e := range b.Entries {
		e.judge(b.Traces)
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
		return nil, errNoResults
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

// identity differs between traces.
func identity(r *sweep.Result) string { return cmp.Or(r.TraceSHA256, "name "+r.Trace) }

// placeTraces sets the traces of the results, and returns the index of each by its identity.
func (b *Board) placeTraces(results []sweep.Result) map[string]int {
	found := map[string]*Trace{}
	var names []string
	for i := range results {
		r := &results[i]
		id := identity(r)
		if found[id] == nil {
			found[id] = &Trace{Name: r.Trace, SHA256: r.TraceSHA256, Events: r.Events}
			names = append(names, id)
		}
		found[id].LowerBound = max(found[id].LowerBound, r.LowerBound)
	}
	slices.Sort(names)
	place := map[string]int{}
	for i, id := range names {
		place[id] = i
		b.Traces = append(b.Traces, *found[id])
	}
	return place
}

// newEntry returns the entry of a result, without its cells.
func newEntry(r *sweep.Result, c setting.Catalogue, traces int) (*Entry, error) {
	setup, err := sweep.Lookup(c, r.Strategy, r.Config)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", r.Strategy, r.Trace, err)
	}
	return &Entry{Setup: setup, Learned: r.Learn != "", Cells: make([]*sweep.Result, traces)}, nil
}

// judge sets why an entry is not listed, as far as the results show it.
func (e *Entry) judge(traces []Trace) {
	var missing []string
	for i, r := range e.Cells {
		switch {
		case r == nil:
			missing = append(missing, traces[i].Name)
		case r.Semantics != e.Setup.Semantics:
			e.Unlisted = fmt.Sprintf("its results are of version %s of its placements, and this program has %s",
				r.Semantics, e.Setup.Semantics)
			return
		}
	}
	if len(missing) > 0 {
		e.Unlisted = fmt.Sprintf("no result on %s", strings.Join(missing, ", "))
	}
}

// Multiple returns the minimum capacity of the entry on a trace as a multiple of the lower bound,
// infinity for a failure.
func (e *Entry) Multiple(trace int, bound device.Size) float64 {
	r := e.Cells[trace]
	if r == nil || r.Failed != "" || r.MinCapacity == nil || bound == 0 {
		return math.Inf(1)
	}
	return float64(*r.MinCapacity) / float64(bound)
}

// DeviceCalls returns the calls of the measuring replay on a trace, and false if it did not
// complete.
func (e *Entry) DeviceCalls(trace int) (n uint64, ok bool) {
	r := e.Cells[trace]
	if r == nil || r.Failed != "" || !r.Completed {
		return 0, false
	}
	return r.DeviceCalls, true
}
