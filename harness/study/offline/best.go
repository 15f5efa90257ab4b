package offline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
)

// Schema is the schema of a [Report] in JSON.
const Schema = "vramyard-offline/1"

// Report is the result of searches on several traces.
type Report struct {
	Schema     string           `json:"schema"`     // [Schema]
	Provenance provenance.Build `json:"provenance"` // the program, set by the caller
	FreeAt     replay.FreeAt    `json:"free_at"`    // when delayed frees release memory
	Limits     Limits           `json:"limits"`     // of each search
	Traces     []*Summary       `json:"traces"`     // in the given order
}

// Summary is the result for a problem, without offsets and times. It is the same on every machine
// unless a time limit ended the search.
type Summary struct {
	Trace string `json:"trace"`            // name of the trace
	Hash  string `json:"sha256,omitempty"` // of its file
	// why the trace is not the complete run; empty: no known gap
	Gap        string      `json:"-"`
	Buffers    int         `json:"buffers"`           // number
	LowerBound device.Size `json:"lower_bound_bytes"` // peak of the live bytes
	Greedy     []Placement `json:"greedy"`            // by order
	Best       Placement   `json:"best"`              // the lowest of all, including the search
}

// Placement is a [Solution] without its offsets.
type Placement struct {
	Method      string      `json:"method"`             // algorithm
	Height      device.Size `json:"height_bytes"`       // end of the highest buffer
	TimesBound  float64     `json:"times_bound"`        // height / lower bound; 1 if both are 0
	Optimal     bool        `json:"optimal"`            // proved optimal
	ProvenBound device.Size `json:"proven_bound_bytes"` // no lower height is possible
	Steps       uint64      `json:"steps"`              // buffers and ranges examined
	Nodes       uint64      `json:"nodes"`              // partial placements expanded
	Stopped     string      `json:"stopped,omitempty"`  // why the search gave up
}

// Best tries every greedy placement, then searches from the lowest one. It returns the lowest
// solution and a summary without the name of the trace.
func Best(ctx context.Context, p *Problem, l Limits) (*Solution, *Summary) {
	sum := &Summary{Buffers: len(p.buffers), LowerBound: p.total}
	all := p.greedies()
	for _, s := range all {
		sum.Greedy = append(sum.Greedy, p.placement(s))
	}
	s := p.searchFrom(ctx, l, all)
	sum.Best = p.placement(s)
	return s, sum
}

func (p *Problem) placement(s *Solution) Placement {
	times := 1.0
	if p.total > 0 {
		times = float64(s.Height) / float64(p.total)
	}
	return Placement{
		Method: s.Method, Height: s.Height, TimesBound: times, Optimal: s.Optimal, ProvenBound: s.Bound,
		Steps: s.Steps, Nodes: s.Nodes, Stopped: s.Stopped,
	}
}

// WriteCSV writes a solution in MiniMalloc's format, as its validator reads it: columns
// id,lower,upper,size,offset, and alignment if used. IDs are the trace's if unique,
// otherwise indices.
func (p *Problem) WriteCSV(w io.Writer, s *Solution) error {
	aligned := slices.ContainsFunc(p.buffers, func(b Buffer) bool { return b.Align > 1 })
	ids := make(map[uint64]bool, len(p.buffers))
	for _, b := range p.buffers {
		ids[b.ID] = true
	}
	out := bufio.NewWriter(w)
	line := []byte("id,lower,upper,size,offset")
	if aligned {
		line = []byte("id,lower,upper,size,alignment,offset")
	}
	for i, b := range p.buffers {
		out.Write(append(line, '\n')) // bufio.Writer keeps the first error for Flush
		id := uint64(i)
		if len(ids) == len(p.buffers) {
			id = b.ID
		}
		line = fmt.Appendf(line[:0], "%d,%d,%d,%d", id, b.Lower, b.Upper, uint64(b.Size))
		if aligned {
			line = fmt.Appendf(line, ",%d", uint64(max(b.Align, 1)))
		}
		line = fmt.Appendf(line, ",%d", uint64(s.Offsets[i]))
	}
	out.Write(append(line, '\n'))
	return out.Flush()
}
