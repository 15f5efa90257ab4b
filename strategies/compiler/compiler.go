package compiler

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/kit/tiles"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// phase is the state of the record.
type phase uint8

const (
	outside   phase = iota // before the first iteration
	recording              // segments are added to the record
	replaying              // requests are validated against the record
	failed                 // a graph break: nothing is recorded until the next iteration
)

// entry is a recorded request.
type entry struct {
	size    device.Size // requested bytes
	segment int32
}

// Allocator records and replays. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	tiles.View
	core  planned.Core // the fallback
	cfg   Config
	graph graph

	phase   phase
	begins  bool // an iteration begins with the next request
	record  []entry
	next    int // position of a replay
	refusal power.Refusal
}

var (
	_ alloc.Strategy = (*Allocator)(nil)
	_ power.Informed = (*Allocator)(nil)
)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid, if src has no
// virtual memory, with an error that wraps [device.ErrUnsupported], or if its pages are larger than
// Config.PageBytes.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	vm, err := regions.Paged(src, "compiler", "page_bytes", c.PageBytes)
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.View = a.core.Init("compiler", src, c.core())
	a.graph = graph{
		vm: vm, size: c.PageBytes, limit: c.Limit, sized: map[device.Size][]int32{}, total: &a.core.Stats,
	}
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Mark implements [power.Informed]: an iteration begins.
func (a *Allocator) Mark(text string) {
	if planned.BeginsIteration(text) {
		a.begins = true
	}
}

// begin begins an iteration. A record is replayed, unless it failed: then its memory is released,
// and another one begins.
func (a *Allocator) begin() {
	a.begins, a.next = false, 0
	switch a.phase {
	case recording:
		a.phase = replaying
	case outside, failed:
		_ = a.graph.trim() // memory that the device refuses stays for the next record
		a.phase, a.record = recording, a.record[:0]
	}
}

// Alloc implements [alloc.Allocator]. The package comment states its cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.core.Accepts(&r) {
		err := a.core.Refuse(&r)
		a.refused()
		return alloc.Block{}, err
	}
	if a.begins {
		a.begin()
	}
	if r.Size >= a.cfg.PageBytes && r.Size <= mostPages*a.cfg.PageBytes && r.Align <= a.cfg.PageBytes {
		if i := a.serve(r.Size); i != none {
			return a.graph.grant(i, &r), nil
		}
	}
	return a.fallback(&r)
}

// serve returns the segment of a large request, or none. A mismatch is a graph break.
func (a *Allocator) serve(n device.Size) int32 {
	switch a.phase {
	case recording:
		size := device.AlignUp(n, a.cfg.PageBytes)
		i, err := a.graph.take(size)
		if err != nil {
			if _, e := a.View.Trim(); e == nil { // the fallback may hold what is missing
				i, err = a.graph.take(size)
			}
		}
		if err == nil {
			a.record = append(a.record, entry{n, i})
			return i
		}
	case replaying:
		if a.next < len(a.record) {
			if e := a.record[a.next]; e.size == n && a.graph.usable(e.segment) {
				a.next++
				return e.segment
			}
		}
	default:
		return none
	}
	a.phase = failed
	return none
}

// fallback grants a block outside of the graph. If there is no memory, the graph fails and its free
// memory is released.
func (a *Allocator) fallback(r *alloc.Request) (alloc.Block, error) {
	b, err := a.core.Fallback(r)
	if err != nil && a.trim() > 0 {
		a.core.Stats.OOMs--
		b, err = a.core.Fallback(r)
	}
	if err != nil {
		a.refused()
	}
	return b, err
}

// trim releases the free memory of the graph, which fails with it, and returns the bytes.
func (a *Allocator) trim() device.Size {
	before := a.core.Stats.Reserved + a.core.Stats.Forgotten
	_ = a.graph.trim()
	freed := before - a.core.Stats.Reserved - a.core.Stats.Forgotten
	if a.phase != outside {
		a.phase = failed
	}
	return freed
}

// refused keeps the last refusal, with the free memory of this moment, also of the graph.
func (a *Allocator) refused() {
	a.refusal, _ = a.View.LastRefusal()
	free, slack := a.graph.survey()
	a.refusal.LargestHole = max(a.View.LargestFree(), free)
	a.refusal.Free = a.core.Stats.Reserved - a.core.Stats.Active - slack
}

// Free implements [alloc.Allocator]. It costs O(pages), in the fallback O(log free chunks).
func (a *Allocator) Free(at device.Addr) error {
	if a.graph.release(at) {
		return nil
	}
	return a.core.Free(at)
}

// Close implements [alloc.Strategy].
func (a *Allocator) Close() error {
	err := a.View.Close()
	for _, b := range a.graph.ledger.Range {
		s := &a.graph.segments[b.Place]
		s.state = idle
		a.graph.use(s, false)
	}
	a.graph.ledger = front.Ledger{}
	a.graph.own.Emptied()
	return cmp.Or(err, a.graph.trim())
}
