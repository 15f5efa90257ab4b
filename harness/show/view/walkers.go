package view

import (
	"slices"
	"sync"

	"github.com/vramyard/vramyard/harness/show/page"
)

// walkers keeps paused replays, so that a later event of the same run continues one of them. A
// strategy cannot be copied, so going back means starting again.
type walkers struct {
	mu     sync.Mutex
	list   []waiting // least recently used first
	closed bool
}

// waiting is a paused replay.
type waiting struct {
	run int
	*page.Walker
}

// take removes and returns the paused replay of a run that is closest before an event, or a new one
// from begin.
func (w *walkers) take(run, event int, begin func() (*page.Walker, error)) (*page.Walker, error) {
	w.mu.Lock()
	best := -1
	for i, x := range w.list {
		if x.run == run && x.Last() <= event && (best < 0 || x.Last() > w.list[best].Last()) {
			best = i
		}
	}
	if best < 0 {
		w.mu.Unlock()
		return begin()
	}
	x := w.list[best]
	w.list = slices.Delete(w.list, best, best+1)
	w.mu.Unlock()
	return x.Walker, nil
}

// put keeps a paused replay, and may close the least recently used one.
func (w *walkers) put(run int, x *page.Walker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		x.Close()
		return
	}
	if w.list = append(w.list, waiting{run, x}); len(w.list) > mostWalker {
		w.list[0].Close()
		w.list = slices.Delete(w.list, 0, 1)
	}
}

// close closes all paused replays.
func (w *walkers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, x := range w.list {
		x.Close()
	}
	w.list = nil
}
