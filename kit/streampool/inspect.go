package streampool

import (
	"reflect"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Chunk is a chunk as [Pool.Walk] shows it.
type Chunk struct {
	Region    device.Addr   // start of the region it lies in
	Addr      device.Addr   // first byte
	Size      device.Size   // bytes
	Requested device.Size   // 0 unless live or pending
	State     State         // state of the chunk
	Slack     bool          // end of a region, too small for a chunk
	Stream    device.Stream // live: stream of the request; pending or owned: stream of the free
	Owner     int           // free: number of the owner, by first use from 1; 0 if unowned
	Tag       uint64        // 0 unless live or pending
}

// Show returns a live chunk, without Region. O(1).
func (p *Pool) Show(h Handle) Chunk {
	w := &p.rows[h]
	c := Chunk{
		Addr: w.addr, Size: w.size, Requested: w.requested, State: w.state, Tag: w.tag, Stream: p.groups[w.group].stream,
	}
	if w.state == Free {
		c.Owner = int(w.group)
	}
	return c
}

// Walk yields every chunk, region by region in address order.
func (p *Pool) Walk(yield func(Chunk) bool) {
	for e := range p.regions.All {
		if !p.walkRegion(e, yield) {
			return
		}
	}
}

func (p *Pool) walkRegion(e index.AddrEntry[region], yield func(Chunk) bool) bool {
	at, end := e.Addr, e.Addr.Add(e.Value.size)
	if p.groups != nil { // else it is closed
		for h := e.Value.first; h != None; h = p.rows[h].next {
			c := p.Show(h)
			c.Region = e.Addr
			if !yield(c) {
				return false
			}
			at = at.Add(c.Size)
		}
	}
	return at >= end || yield(Chunk{Region: e.Addr, Addr: at, Size: end.Sub(at), Slack: true})
}

// Bytes returns the host memory of tables, maps and queues, unused capacity included. It costs
// O(regions / 32 + streams).
func (p *Pool) Bytes() (n device.Size) {
	for i := range p.groups {
		n += p.groups[i].free.Bytes()
	}
	return n + index.BytesOf(p.rows) + index.BytesOf(p.groups) + index.BytesOf(p.marks.rows) +
		index.BytesOf(p.marks.events) +
		index.BytesOf(p.uses.rows) + p.busy.Bytes() + p.largest.Bytes() + p.live.Bytes() + p.index.Bytes() +
		p.regions.Bytes(device.Size(reflect.TypeFor[region]().Size()))
}

// Region returns the addresses of a live chunk. O(1).
func (p *Pool) Region(h Handle) device.Region {
	return device.Region{Addr: p.rows[h].addr, Size: p.rows[h].size}
}

// Pending returns the bytes of freed blocks that other streams still use. O(1).
func (p *Pool) Pending() device.Size { return p.stats.Pending }
