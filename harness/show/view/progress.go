package view

import "sync"

// Progress says how far the making of a page has come. It is safe for concurrent use.
type Progress struct {
	mu     sync.Mutex
	phase  string
	done   int
	known  int
	notify func(phase string, done, known int)
}

// NewProgress returns a progress that tells a function, which may be nil.
func NewProgress(notify func(phase string, done, known int)) *Progress {
	return &Progress{notify: notify}
}

// Set says what is done, and how far it has come.
func (p *Progress) Set(phase string, done, known int) {
	p.mu.Lock()
	p.phase, p.done, p.known = phase, done, known
	p.mu.Unlock()
	if p.notify != nil {
		p.notify(phase, done, known)
	}
}

// Get returns what Set has said.
func (p *Progress) Get() (phase string, done, known int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase, p.done, p.known
}
