package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
)

// Parts holds the number of operations in each part of a workload.
type Parts struct {
	Fill   int `json:"fill"`   // build up the live blocks
	Settle int `json:"settle"` // untimed churn
	Churn  int `json:"churn"`  // timed churn
}

// Total returns the operations of all parts.
func (p Parts) Total() int { return p.Fill + p.Settle + p.Churn }

// Workload is a shape with its parameters. It holds no operations, so it is cheap to keep.
// [Shape.New] makes one.
type Workload struct {
	shape  Shape
	params Params
	parts  Parts
}

// Shape returns the catalogue entry of the workload.
func (w Workload) Shape() Shape { return w.shape }

// Params returns the parameters.
func (w Workload) Params() Params { return w.params }

// Parts returns the number of operations of each part.
func (w Workload) Parts() Parts { return w.parts }

// Name returns the name of the shape and of every parameter that differs from the default, as a
// word for tables and file names: "w1", "w1-live10000".
func (w Workload) Name() string {
	var b strings.Builder
	b.WriteString(w.shape.Name)
	defaults := w.shape.Default.list()
	for i, p := range w.params.list() {
		if p.value != defaults[i].value {
			b.WriteString("-" + p.name + strconv.FormatUint(p.value, 10))
		}
	}
	return b.String()
}

// String returns the name of the shape and all its parameters, sizes in bytes: "w1 live=1000
// pairs=1000000 seed=42".
func (w Workload) String() string {
	var b strings.Builder
	b.WriteString(w.shape.Name)
	for _, p := range w.listed() {
		fmt.Fprintf(&b, " %s=%d", p.name, p.value)
	}
	return b.String()
}

// listed returns the parameters that the shape has.
func (w Workload) listed() (list []param) {
	defaults := w.shape.Default.list()
	for i, p := range w.params.list() {
		if defaults[i].value != 0 {
			list = append(list, p)
		}
	}
	return list
}

// Ops yields every operation: the fill, then the settle, then the churn. Memory does not grow with
// their number. Every iteration is the same.
func (w Workload) Ops(yield func(Op) bool) { w.shape.run(w.params, &sink{yield: yield}) }

// Summary generates all operations and summarizes them. Memory grows with the slots only.
func (w Workload) Summary() Summary {
	m := newMeter()
	for o := range w.Ops {
		m.add(o)
	}
	return w.sum(m)
}

// sum completes a meter's summary of all operations.
func (w Workload) sum(m *meter) Summary {
	s := m.Summary
	s.Pairs = m.allocs - w.parts.Fill - w.parts.Settle/2 // the settle consists of pairs too
	return s
}

// Program is a workload with its operations in memory, for a timed loop that generates nothing.
type Program struct {
	Workload Workload // the workload of the operations
	Summary  Summary  // summary of the operations
	Fill     []Op     // builds up the live blocks; untimed
	Settle   []Op     // lets placement settle; untimed
	Churn    []Op     // timed
}

// Program generates all operations and stores them, 8 bytes each.
func (w Workload) Program() *Program {
	ops := make([]Op, 0, w.parts.Total())
	m := newMeter()
	for o := range w.Ops {
		ops = append(ops, o)
		m.add(o)
	}
	settle, churn := w.parts.Fill, w.parts.Fill+w.parts.Settle
	return &Program{
		Workload: w,
		Summary:  w.sum(m),
		Fill:     ops[:settle:settle],
		Settle:   ops[settle:churn:churn],
		Churn:    ops[churn:],
	}
}

// Trace returns the operations as a trace in memory; see [Workload.Source].
//
// It fails if the workload has more than [trace.DefaultMaxEvents] events.
func (w Workload) Trace() (*trace.Trace, error) {
	if n := w.Events(); n > trace.DefaultMaxEvents {
		return nil, fmt.Errorf("workload %s: %d events: a trace holds at most %d", w.Name(), n, trace.DefaultMaxEvents)
	}
	src := w.Source()
	b := trace.NewBuilder(src.Head().Header)
	err := src.Batches(func(events []trace.Event) error {
		for i := range events {
			events[i].Tag = b.Tag(src.TagOf(&events[i]))
			if err := b.Add(events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return b.Trace(), err
}
