package main

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// program is a run that runs out of memory on its card.
type program struct {
	name string
	card device.Size // memory of the card
	make func(*maker)
}

// programs holds all of them, in the order of README.md.
var programs = []program{
	{"chat", 16 * device.GiB, chat},
	{"layouts", 32 * device.GiB, layouts},
	{"leftovers", 12 * device.GiB, leftovers},
	{"batches", 16 * device.GiB, batches},
}

func (p *program) trace() (*trace.Trace, error) {
	m := &maker{b: trace.NewBuilder(trace.Header{Name: p.name})}
	p.make(m)
	if m.err != nil {
		return nil, m.err
	}
	return m.b.Trace(), nil
}

// maker builds a trace and keeps the first error.
type maker struct {
	b    *trace.Builder
	next uint64
	err  error
}

// tensor is the ID of an allocation.
type tensor uint64

// alloc adds a request.
func (m *maker) alloc(size device.Size, tag string) tensor {
	m.next++
	m.add(trace.Event{Kind: trace.Alloc, ID: m.next, Size: size, Tag: m.b.Tag(tag), Time: trace.NoTime})
	return tensor(m.next)
}

func (m *maker) free(list ...tensor) {
	for _, t := range list {
		m.add(trace.Event{Kind: trace.Free, ID: uint64(t), Time: trace.NoTime})
	}
}

// mark adds a mark with the name of the step that begins.
func (m *maker) mark(format string, args ...any) {
	m.add(trace.Event{Kind: trace.Mark, Tag: m.b.Tag(fmt.Sprintf(format, args...)), Time: trace.NoTime})
}

func (m *maker) add(e trace.Event) {
	if m.err == nil {
		m.err = m.b.Add(e)
	}
}
