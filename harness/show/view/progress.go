package view

import "sync"

// Progress is the progress of making a page. It is safe for concurrent use.
type Progress struct {
	mu     sync.Mutex
	phase  string
	done   int
	known  int
	notify func(phase string, done, known int)
}

// NewProgress returns a progress that reports to notify, which may be nil.
func NewProgress(notify func(phase string, done, known int)) *Progress {
	return &Progress{notify: notify}
}

// Set records the current phase and how much of it is done.
func (p *Progress) Set(phase string, done, known int) {
	p.mu.Lock()
	p.phase, p.done, p.known = phase, done, known
	p.mu.Unlock()
	if p.notify != nil {
		p.notify(phase, done, known)
	}
}

// Get returns the values of the last Set.
func (p *Progress) Get() (phase string, done, known int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase, p.done, p.known
}
