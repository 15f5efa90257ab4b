package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/vramyard/vramyard/props"
)

// Options configure a verification. Zero fields mean their defaults.
type Options struct {
	Sequences  int   // sequences of operations for each subject; default 2000
	Operations int   // operations in a sequence; default 100
	Seed       int64 // of the first sequence of each subject; each next one has the next seed
	Tries      int   // how often a failing sequence is run to make it smaller; default 4000
	Contents   bool  // fill and compare blocks: verify the subjects of [props.Subject.Filled] instead
	Faults     bool  // also let the device refuse each of its calls in turn, in fewer sequences
	Workers    int   // batches verified at once; default one for each core

	Patience time.Duration // how long one call may take before it is taken to hang; default 10 seconds

	// Card, if not nil, is a real device beside the device of each subject ([props.Subject]).
	// Blocks are filled and compared then, by one worker.
	Card *props.Card

	// Progress, if not nil, is called once for each of the [Options.Batches], when it is
	// done or need not be done. It must be safe for concurrent use.
	Progress func()
}

func (o Options) withDefaults() Options {
	o.Sequences, o.Operations = cmp.Or(o.Sequences, 2000), cmp.Or(o.Operations, 100)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	if o.Card != nil {
		o.Workers, o.Contents = 1, true
	}
	return o
}

// pass is one kind of verification of all seeds of a subject.
type pass struct {
	verify func(props.Subject, props.Options) (props.Result, error)
	share  int // one in this many sequences
	batch  int // sequences in a batch: about a tenth of a second
}

func (o Options) passes() []pass {
	all := []pass{{verify: props.Verify, share: 1, batch: 50}}
	if o.Faults {
		// A sequence is run once for each of its device calls, some dozens of times.
		all = append(all, pass{verify: props.VerifyFaults, share: 40, batch: 2})
	}
	return all
}

// SubjectReport is the result of the verification of one subject.
type SubjectReport struct {
	Subject props.Subject  // the subject
	Result  props.Result   // counts; no times, so that it is the same every time
	Failure *props.Failure // the one with the lowest seed, nil if every invariant held
}

// Report is the result of a verification, in the order of the subjects.
type Report struct {
	Subjects []SubjectReport // one for each subject
}

// Sequences returns the number of sequences run.
func (r Report) Sequences() (n int) {
	for _, s := range r.Subjects {
		n += s.Result.Sequences
	}
	return n
}

// Failures returns the failures, at most one of each subject.
func (r Report) Failures() (all []*props.Failure) {
	for _, s := range r.Subjects {
		if s.Failure != nil {
			all = append(all, s.Failure)
		}
	}
	return all
}

// Run verifies the subjects. The report has the violations. The error is about a subject that
// cannot be verified, because it cannot be built or depends on more than its calls. Both depend
// only on the subjects and options, not on the number of workers. If ctx ends, Run returns its
// error and the report of the subjects reached; a batch that has begun is completed. A call that
// does not return ends the verification too, because its goroutine cannot be ended: the report has
// its failure, and subjects without sequences were not reached.
//
// Precondition: the subjects' New and Promises are safe for concurrent use.
func Run(ctx context.Context, subjects []props.Subject, o Options) (Report, error) {
	o = o.withDefaults()
	if o.Sequences < 0 || o.Operations < 0 || o.Workers < 0 {
		return Report{}, fmt.Errorf("check: %d sequences of %d operations by %d workers: want no negative numbers",
			o.Sequences, o.Operations, o.Workers)
	}
	if o.Contents {
		subjects = slices.Clone(subjects)
		for i, s := range subjects {
			subjects[i] = s.Filled()
			subjects[i].Card = o.Card
		}
	}
	p := newPool(ctx, subjects, o)
	p.run(o.Workers)
	if p.broken < len(p.batches) {
		return Report{}, p.batches[p.broken].err
	}
	r := Report{Subjects: make([]SubjectReport, len(subjects))}
	for i, s := range subjects {
		r.Subjects[i].Subject = s
	}
	for i := range p.batches {
		b := &p.batches[i]
		if s := &r.Subjects[b.subject]; i <= p.failed[b.subject] {
			s.Result.Add(b.result)
			if b.err != nil {
				errors.As(b.err, &s.Failure) // only the last batch may have failed
			}
		}
	}
	if p.stopped && ctx.Err() != nil {
		r.Subjects = slices.DeleteFunc(r.Subjects, func(s SubjectReport) bool {
			return s.Result.Sequences == 0 && s.Failure == nil
		})
		return r, ctx.Err()
	}
	return r, nil
}
