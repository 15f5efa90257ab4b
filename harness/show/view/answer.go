package view

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/page"
)

// badQuery is an invalid query parameter.
type badQuery struct{ field, why string }

func (e badQuery) Error() string { return e.field + ": " + e.why }

// numbers parses the query parameters of a request.
type numbers struct {
	url.Values
	err error
}

// get returns a parameter as a number from 0 to most.
func (n *numbers) get(field string, most int) int {
	v, err := strconv.ParseUint(n.Get(field), 10, 64)
	switch {
	case n.err != nil:
	case err != nil || len(n.Values[field]) != 1:
		n.err = badQuery{field, "want one whole number"}
	case v > uint64(most):
		n.err = badQuery{field, fmt.Sprintf("want at most %d", most)}
	default:
		return int(v)
	}
	return 0
}

const (
	mostBlocks = 1 << 20 // in a response
	mostBucket = 1 << 13 // in a response
	mostStates = 32      // states kept
	mostWalker = 4       // paused replays kept
)

func (r *Replays) run(n *numbers) *Run {
	if i := n.get("run", len(r.Runs)-1); n.err == nil {
		return &r.Runs[i]
	}
	return nil
}

// tile writes the blocks of a window: events "from" to before "to", positions "low" to before
// "high" on the address axis, at most "most" blocks.
func (r *Replays) tile(ctx context.Context, w io.Writer, q url.Values) error {
	n := &numbers{Values: q}
	run := r.run(n)
	events := r.Trace.Head.Events
	win := page.BlockWindow{From: n.get("from", events), To: n.get("to", events), Most: n.get("most", mostBlocks)}
	low, high := n.get("low", math.MaxInt64), n.get("high", math.MaxInt64)
	if n.err != nil {
		return n.err
	}
	win.Low, win.High = addresses(&run.Picture.Space, float64(low), float64(high))
	found, err := run.blocks.Find(ctx, win)
	if err != nil {
		return err
	}
	return page.WriteTile(w, &run.Picture.Space, found.Rects, found.Complete, events, r.Stacks)
}

// addresses converts a range of axis positions to addresses.
func addresses(s *page.Space, low, high float64) (from, to device.Addr) {
	if len(s.Ranges) == 0 || low >= high {
		return 0, 0
	}
	from, to = s.Ranges[0].Addr, s.Ranges[len(s.Ranges)-1].End()
	for _, r := range s.Ranges {
		if r.Y <= low {
			from = r.Addr.Add(device.Size(low - r.Y))
		}
		if r.Y < high && high <= r.Y+float64(r.Size) {
			to = r.Addr.Add(device.Size(high - r.Y))
		}
	}
	return from, to
}

// series writes the curves of all runs for events "from" to before "to", in the finest buckets of
// which at most "most" are needed. Buckets are aligned with the page's.
func (r *Replays) series(_ context.Context, w io.Writer, q url.Values) error {
	n := &numbers{Values: q}
	g := r.Trace.Grid
	from, to, most := n.get("from", g.Events), n.get("to", g.Events), n.get("most", mostBucket)
	if n.err == nil && from >= to {
		n.err = badQuery{"from", "want less than to"}
	}
	if n.err != nil {
		return n.err
	}
	p := r.pick(from, to, most)
	runs := make([]*page.Picture, len(r.Runs))
	for i := range r.Runs {
		runs[i] = r.Runs[i].Picture.Pick(p)
	}
	return page.WriteSeries(w, r.Trace.Pick(p), runs, p.From>>p.Shift)
}

// pick returns the finest buckets for a window of events.
func (r *Replays) pick(from, to, most int) page.Pick {
	g := r.Trace.Grid
	coarse := g.Coarse(page.Budget(1).Buckets).Shift
	p := page.Pick{From: from >> g.Shift, To: min((to-1)>>g.Shift+1, g.Len())}
	p.From = p.From >> coarse << coarse
	p.To = min((p.To+1<<coarse-1)>>coarse<<coarse, g.Len())
	for p.Shift < coarse && (p.To-p.From)>>p.Shift > most {
		p.Shift++
	}
	return p
}

// states caches the most recently used states.
type states struct {
	mu   sync.Mutex
	list []cachedRun // least recently used first
}

type cachedRun struct {
	run, event int
	at         *page.Snapshot
}

func (s *states) get(run, event int) *page.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.list {
		if k.run == run && k.event == event {
			return k.at
		}
	}
	return nil
}

func (s *states) put(run, event int, at *page.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == mostStates {
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, cachedRun{run, event, at})
}

// state writes the state of a run after an event.
func (r *Replays) state(ctx context.Context, w io.Writer, q url.Values) error {
	n := &numbers{Values: q}
	run := r.run(n)
	event := n.get("event", r.Trace.Head.Events-1)
	if n.err != nil {
		return n.err
	}
	i := n.get("run", len(r.Runs)-1)
	at := r.states.get(i, event)
	if at == nil {
		walker, err := r.walkers.take(i, event, func() (*page.Walker, error) {
			p, err := r.prepared()
			if err != nil {
				return nil, err
			}
			o := page.Budget(len(r.Runs))
			o.FreeAt = r.freeAt
			return r.Trace.Walker(p, run.Setup, run.device, o), nil
		})
		if err != nil {
			return err
		}
		at, err = walker.To(ctx, event)
		if err != nil && ctx.Err() == nil {
			walker.Close()
			return err
		}
		r.walkers.put(i, walker)
		if err != nil {
			return err
		}
		r.states.put(i, event, at)
	}
	return page.WriteSnapshot(w, at, r.Stacks)
}
