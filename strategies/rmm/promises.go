package rmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	s := promise.Set{
		Quantum:    quantum,
		Honours:    func(r alloc.Request) bool { return r.Align <= quantum },
		MaxGrant:   func(r alloc.Request) device.Size { return c.blockFor(r.Size) },
		Boundaries: promise.PowersOfTwo(quantum, device.GiB),
		Except: []promise.Exception{
			{Invariant: "I39", Reason: "the stream of a request chooses what is free for it"},
		},
		Fits: c.fits,
		// A chunk of another stream need not serve: the device may refuse the call that makes it safe.
		Serves: func(f alloc.Chunk, r alloc.Request) bool {
			own := f.Class == classOf(r.Stream)
			if c.Resource == Arena {
				own = f.Class == alloc.NoClass || own && r.Size <= leastSuperblock
			}
			return own && c.fits(f, r)
		},
	}
	if c.Resource != Arena {
		s.MustMerge = func(left, right alloc.Chunk) bool {
			return left.Owner == 0 && right.Owner == 0 && left.Class == right.Class
		}
	}
	return s
}

// fits reports whether a free chunk may serve a request. A chunk of the pool serves a bin if all
// blocks that the bin gets at once fit.
func (c Config) fits(f alloc.Chunk, r alloc.Request) bool {
	k, n := c.binOf(r.Size), c.blockFor(r.Size)
	switch {
	case k == c.bins():
		return f.Owner == 0 && f.Size >= n
	case f.Owner == 0:
		return f.Size >= n*device.Size(c.BinBlocks)
	}
	return int(f.Owner) == k+1
}
