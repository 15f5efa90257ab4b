// Package requests builds the traces of the example programs request by request.
package requests

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Maker builds a trace and keeps the first error.
type Maker struct {
	b    *trace.Builder
	next uint64
	err  error
}

// New returns a maker of a trace with header h.
func New(h trace.Header) *Maker { return &Maker{b: trace.NewBuilder(h)} }

// Trace returns the trace, or the first error.
func (m *Maker) Trace() (*trace.Trace, error) {
	if m.err != nil {
		return nil, m.err
	}
	return m.b.Trace(), nil
}

// Tensor is the ID of an allocation.
type Tensor uint64

// Alloc adds a request of the default stream.
func (m *Maker) Alloc(size device.Size, tag string) Tensor { return m.AllocOn(0, size, tag) }

// AllocOn adds a request of a stream.
func (m *Maker) AllocOn(s device.Stream, size device.Size, tag string) Tensor {
	m.next++
	m.Add(trace.Event{Kind: trace.Alloc, ID: m.next, Size: size, Stream: s, Tag: m.b.Tag(tag)})
	return Tensor(m.next)
}

// Free frees tensors in the order of the list.
func (m *Maker) Free(list ...Tensor) {
	for _, t := range list {
		m.Add(trace.Event{Kind: trace.Free, ID: uint64(t)})
	}
}

// Mark adds a mark with the name of the step that begins.
func (m *Maker) Mark(format string, args ...any) {
	m.Add(trace.Event{Kind: trace.Mark, Tag: m.b.Tag(fmt.Sprintf(format, args...))})
}

// Add adds an event of any kind, without a time.
func (m *Maker) Add(e trace.Event) {
	e.Time = trace.NoTime
	if m.err == nil {
		m.err = m.b.Add(e)
	}
}
