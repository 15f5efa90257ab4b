package check

import (
	"context"
	"errors"
	"sync"

	"github.com/vramyard/vramyard/props"
)

// batch is a run of seeds of one subject, verified in one way.
type batch struct {
	subject int // index
	pass    pass
	options props.Options

	result props.Result
	err    error
}

type pool struct {
	subjects []props.Subject
	batches  []batch // by subject, pass and seed
	progress func()
	ctx      context.Context

	lock    sync.Mutex
	stopped bool  // batches are left because ctx has ended or a call hangs
	next    int   // first batch that no worker took
	failed  []int // by subject: the first batch that broke an invariant, len(batches) if none did
	broken  int   // the first batch that could not be verified, len(batches) if all could
}

// Batches returns how many batches n subjects make.
func (o Options) Batches(n int) int { return n * len(o.withDefaults().split(0)) }

// mostBatches is the maximum number of batches of one pass over a subject. Batches grow instead,
// so that the pool stays small for a run of a week.
const mostBatches = 1000

func (o Options) split(subject int) (all []batch) {
	for _, p := range o.passes() {
		n := max(o.Sequences/p.share, 1)
		size := max(p.batch, (n+mostBatches-1)/mostBatches)
		for done := 0; done < n; done += size {
			all = append(all, batch{subject: subject, pass: p, options: props.Options{
				Sequences: min(size, n-done), Operations: o.Operations, Seed: o.Seed + int64(done), Tries: o.Tries,
				Patience: o.Patience,
			}})
		}
	}
	return all
}

func newPool(ctx context.Context, subjects []props.Subject, o Options) *pool {
	p := &pool{subjects: subjects, progress: o.Progress, ctx: ctx, failed: make([]int, len(subjects))}
	for i := range subjects {
		p.batches = append(p.batches, o.split(i)...)
	}
	p.broken = len(p.batches)
	for i := range p.failed {
		p.failed[i] = len(p.batches)
	}
	return p
}

// run verifies every relevant batch.
func (p *pool) run(workers int) {
	var all sync.WaitGroup
	for range min(workers, len(p.batches)) {
		all.Go(func() {
			for i, ok := p.take(); ok; i, ok = p.take() {
				b := &p.batches[i]
				b.result, b.err = b.pass.verify(p.subjects[b.subject], b.options)
				p.done(i)
			}
		})
	}
	all.Wait()
}

// take returns the first relevant batch that no worker has taken.
func (p *pool) take() (i int, ok bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for ; p.next < p.broken; p.next++ {
		if p.next < p.failed[p.batches[p.next].subject] {
			if p.stopped = p.stopped || p.ctx.Err() != nil; p.stopped {
				return 0, false
			}
			p.next++
			return p.next - 1, true
		}
		p.advance()
	}
	return 0, false
}

func (p *pool) done(i int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	b := &p.batches[i]
	var f *props.Failure
	switch {
	case errors.As(b.err, &f):
		p.failed[b.subject] = min(p.failed[b.subject], i)
		p.stopped = p.stopped || f.Hung
	case b.err != nil:
		p.broken = min(p.broken, i)
	}
	p.advance()
}

func (p *pool) advance() {
	if p.progress != nil {
		p.progress()
	}
}
