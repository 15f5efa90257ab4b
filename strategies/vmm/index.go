package vmm

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// freeIndex holds the free chunks: by size and address for the best fit, by address for the first
// fit.
type freeIndex struct {
	table   *table
	quantum device.Size
	first   bool
	bySize  index.SizeMap
	byAddr  index.AddrList[handle] // the bound of a leaf is on the sizes of its chunks
}

func (x *freeIndex) insert(h handle) {
	c := &x.table.rows[h]
	if !x.first {
		c.at = x.bySize.Insert(c.size, c.addr, h)
		return
	}
	p, _ := x.byAddr.Search(c.addr)
	p = x.byAddr.Insert(p, index.AddrEntry[handle]{Addr: c.addr, Value: h})
	x.byAddr.Raise(p.Leaf, c.size)
}

func (x *freeIndex) remove(h handle) {
	c := &x.table.rows[h]
	if !x.first {
		if !x.bySize.Remove(c.at, h) {
			panic("vmm: invariant V5 (the index holds the free chunks): the chunk at " + c.addr.String() + " is not in it")
		}
		return
	}
	p, ok := x.byAddr.Search(c.addr)
	if !ok {
		panic("vmm: invariant V5 (the index holds the free chunks): the chunk at " + c.addr.String() + " is not in it")
	}
	x.byAddr.Delete(p)
}

// take removes and returns the chunk for n bytes at a multiple of align, or returns none.
func (x *freeIndex) take(n, align device.Size) handle {
	if x.first {
		return x.takeFirst(n, align)
	}
	var at index.SizeAt
	if align <= x.quantum {
		at = x.bySize.Ceil(n)
	} else {
		at = x.bySize.First(n, func(h uint32) bool { return x.serves(h, n, align) })
	}
	if at == index.NoEntry {
		return none
	}
	return x.bySize.Take(at)
}

// takeFirst is take by address. It searches the leaves whose bound is large enough, and lowers the
// bounds of leaves without a fitting chunk.
func (x *freeIndex) takeFirst(n, align device.Size) handle {
	l := &x.byAddr
	for j := l.NextLeaf(0, n); j < l.Leaves(); j = l.NextLeaf(j+1, n) {
		most := device.Size(0)
		for i, e := range l.Leaf(j) {
			if x.serves(e.Value, n, align) {
				l.Delete(index.AddrPos{Leaf: j, At: i})
				return e.Value
			}
			most = max(most, x.table.rows[e.Value].size)
		}
		l.Lower(j, most)
	}
	return none
}

// serves reports whether a chunk has room for n bytes at a multiple of align.
func (x *freeIndex) serves(h handle, n, align device.Size) bool {
	c := &x.table.rows[h]
	return c.size >= n && pad(c.addr, align) <= c.size-n
}

// pad returns the bytes from an address to the next multiple of align, which may be 0.
func pad(a device.Addr, align device.Size) device.Size { return device.Size(-a) & (max(align, 1) - 1) }

// largest returns the size of the largest free chunk. O(1) for the best fit; for the first, O(free
// chunks).
func (x *freeIndex) largest() (n device.Size) {
	if !x.first {
		return x.bySize.Largest()
	}
	for e := range x.byAddr.All {
		n = max(n, x.table.rows[e.Value].size)
	}
	return n
}

func (x *freeIndex) len() int { return x.bySize.Len() + x.byAddr.Len() }

func (x *freeIndex) clear() {
	x.bySize = index.NewSizeMap(x.quantum)
	x.byAddr.Clear()
}

func (x *freeIndex) bytes() device.Size { return x.bySize.Bytes() + x.byAddr.Bytes(device.Size(4)) }

// all yields the chunks in the order of the search.
func (x *freeIndex) all(yield func(handle) bool) {
	for e := range x.bySize.All {
		if !yield(e.Handle) {
			return
		}
	}
	for e := range x.byAddr.All {
		if !yield(e.Value) {
			return
		}
	}
}
