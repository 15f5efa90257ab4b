package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/trace"
)

// program is a run that runs out of memory on its card.
type program struct {
	name string
	card device.Size // memory of the card
	make func(*requests.Maker)
}

// programs holds all of them, in the order of README.md.
var programs = []program{
	{"chat", 16 * device.GiB, chat},
	{"layouts", 32 * device.GiB, layouts},
	{"leftovers", 12 * device.GiB, leftovers},
	{"batches", 16 * device.GiB, batches},
}

func (p *program) trace() (*trace.Trace, error) {
	m := requests.New(trace.Header{Name: p.name})
	p.make(m)
	return m.Trace()
}
