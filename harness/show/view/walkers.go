package view

import (
	"slices"
	"sync"

	"github.com/vramyard/vramyard/harness/show/page"
)

// walkers keeps replays that wait, so that whoever goes on to a later event need not begin anew. A
// strategy cannot be copied, so there is no way back but from the start.
type walkers struct {
	mu     sync.Mutex
	list   []waiting // the one that was used last at the end
	closed bool
}

// waiting is a replay that waits.
type waiting struct {
	run int
	*page.Walker
}

// take returns a replay of a run for the caller alone: of those that wait before an event the one
// nearest to it, or what begin makes.
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

// put lets a replay wait. The one that was used longest ago may have to go.
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

// close ends all that wait.
func (w *walkers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, x := range w.list {
		x.Close()
	}
	w.list = nil
}
