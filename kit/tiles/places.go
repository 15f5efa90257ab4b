package tiles

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Places lists free chunks by address, for strategies that place blocks at given addresses.
type Places struct {
	index.AddrList[Handle]
	Core *Core // whose chunks they are
}

// Enter adds a free chunk. O(log chunks).
func (p *Places) Enter(h Handle) {
	a := p.Core.Rows[h].Addr
	at, _ := p.Search(a)
	p.Insert(at, index.AddrEntry[Handle]{Addr: a, Value: h})
}

// Leave removes a free chunk. O(log chunks).
func (p *Places) Leave(h Handle) {
	at, _ := p.Search(p.Core.Rows[h].Addr)
	p.Delete(at)
}

// Containing returns the chunk that contains n bytes from an address, or None. O(log chunks).
func (p *Places) Containing(at device.Addr, n device.Size) Handle {
	k, ok := p.Floor(at)
	if !ok {
		return None
	}
	h := p.Entry(k).Value
	if end := p.Core.Rows[h].End(); at >= end || n > end.Sub(at) {
		return None
	}
	return h
}

// Bytes returns the host memory of the list.
func (p *Places) Bytes() device.Size { return p.AddrList.Bytes(4) }

// Cut grants n bytes at an address of a free chunk that is in no index. The rest stays free.
func (c *Core) Cut(h Handle, at device.Addr, n device.Size, r *alloc.Request) alloc.Block {
	if c.Fills(h) {
		c.Occupy(h)
	}
	if pad := at.Sub(c.Rows[h].Addr); pad != 0 {
		rest := c.Split(h, pad)
		c.index.Insert(h)
		h = rest
	}
	if c.Rows[h].Size > n {
		c.index.Insert(c.Split(h, n))
	}
	return c.Grant(h, r)
}
