package cli

import (
	"io"
	"sync"
)

// phases shows on a terminal how far work has come that has several phases, one after the other,
// each with a line of its own. Elsewhere it shows nothing. It is safe for concurrent use.
type phases struct {
	w io.Writer

	mu    sync.Mutex
	phase string // that is under way
	bar   *progress
	over  bool
}

// reached says that so much of what is known of a phase is done. What nothing is known of has no
// bar.
func (p *phases) reached(phase string, done, known int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || known == 0 || lively(p.w) == nil {
		return
	}
	if phase != p.phase {
		p.bar.stop()
		p.phase, p.bar = phase, newProgress(p.w)
		p.bar.begin(stage{what: phase})
	}
	p.bar.reached(int64(done), int64(known))
}

func (p *phases) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.over = true
		p.bar.stop()
	}
}
