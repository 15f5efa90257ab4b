package offline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
)

// Schema names the form of a [Report].
const Schema = "vramyard-offline/1"

// Report is what a search found out of many traces.
type Report struct {
	Schema  string        `json:"schema"`  // [Schema]
	Version string        `json:"version"` // of the program
	FreeAt  replay.FreeAt `json:"free_at"` // when delayed frees give memory back
	Limits  Limits        `json:"limits"`  // of each search
	Traces  []*Summary    `json:"traces"`  // in their order
}

// Summary is what can be said of a problem and how low it can be packed. It has no offsets; times
// are not in it, so that it is the same on every machine, unless a limit of time ended the search.
type Summary struct {
	Trace string `json:"trace"`            // name of the trace
	Hash  string `json:"sha256,omitempty"` // of its file
	// why the trace is not the whole recorded run; empty: no gap is known
	Lacks      string      `json:"-"`
	Buffers    int         `json:"buffers"`           // how many there are
	LowerBound device.Size `json:"lower_bound_bytes"` // most bytes live at once
	Greedy     []Placement `json:"greedy"`            // one for each order
	Best       Placement   `json:"best"`              // the lowest of all, the search's included
}

// Placement is a solution without its offsets.
type Placement struct {
	Method      string      `json:"method"`             // how it was found
	Height      device.Size `json:"height_bytes"`       // end of the highest buffer
	TimesBound  float64     `json:"times_bound"`        // height / lower bound; 1 if both are 0
	Optimal     bool        `json:"optimal"`            // no placement is lower
	ProvenBound device.Size `json:"proven_bound_bytes"` // the least height that is not ruled out
	Steps       uint64      `json:"steps"`              // buffers and ranges that were looked at
	Nodes       uint64      `json:"nodes"`              // partial placements that the search went on from
	Stopped     string      `json:"stopped,omitempty"`  // why the search ended without an answer
}

// Best does all that the package can: every greedy placement, then a search that begins with the
// lowest. It returns the lowest solution and a summary without the name of a trace.
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

// WriteCSV writes a solution as MiniMalloc writes one and its validator reads it: the columns
// id,lower,upper,size,offset, and alignment if a buffer has a wish. Ids are those of the
// trace, or, if it gives one again, the numbers of the buffers.
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
		out.Write(append(line, '\n')) // a bufio.Writer keeps its first error for Flush
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
