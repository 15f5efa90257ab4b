// Package oracle drives a strategy with random calls and compares every answer with a list of live
// blocks. Tests of single strategies use it; package props tests the rules for all strategies.
package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Drive configures random calls of a strategy.
type Drive struct {
	Seed    uint64                                  // of the random calls
	Calls   int                                     // number of calls
	Size    func(*rand.Rand) device.Size            // draws the bytes of a request
	Granted func(requested device.Size) device.Size // bytes of the block for a request that is granted
}

// run is the state of [Drive.Run].
type run struct {
	Drive
	s    alloc.Strategy
	rng  *rand.Rand
	live map[device.Addr]alloc.Request
	keys []device.Addr // of live, in an order that depends on the seed only
	tag  uint64
}

// Run makes the calls. After each it calls Check and compares the walk with the live blocks. It
// returns the first difference, with the seed and the number of the call.
func (d Drive) Run(s alloc.Strategy) error {
	r := &run{Drive: d, s: s, rng: rand.New(rand.NewPCG(d.Seed, 0)), live: map[device.Addr]alloc.Request{}}
	for i := range d.Calls {
		if err := errors.Join(r.step(), s.Check(), r.compare()); err != nil {
			return fmt.Errorf("seed %d, call %d: %w", d.Seed, i, err)
		}
	}
	return nil
}

// step makes one call. Phases of growth and decline alternate, so that memory both fills
// and drains.
func (r *run) step() error {
	rising := r.tag/64%3 != 2
	switch n := r.rng.IntN(100); {
	case n < 8:
		return r.misuse()
	case n < 35 || !rising && n < 70:
		return r.free()
	}
	return r.alloc()
}

// alloc makes a request and checks the granted block, or the record of the refusal.
func (r *run) alloc() error {
	r.tag++
	req := alloc.Request{Size: r.Size(r.rng), Tag: r.tag, Stream: device.Stream(r.rng.IntN(3))}
	b, err := r.s.Alloc(req)
	switch {
	case errors.Is(err, alloc.ErrOutOfMemory), errors.Is(err, alloc.ErrInvalidRequest):
		if refusal, ok := power.LastRefusal(r.s); !ok || refusal.Request != req {
			return fmt.Errorf("refused %d bytes, the record says %+v", req.Size, refusal)
		}
		return nil
	case err != nil:
		return err
	case b.Size != r.Granted(req.Size):
		return fmt.Errorf("%d bytes requested, %d granted, want %d", req.Size, b.Size, r.Granted(req.Size))
	}
	if _, twice := r.live[b.Addr]; twice {
		return fmt.Errorf("block %v granted twice", b.Addr)
	}
	r.live[b.Addr] = req
	r.keys = append(r.keys, b.Addr)
	return nil
}

// free frees a random live block twice. The second free must be refused.
func (r *run) free() error {
	if len(r.keys) == 0 {
		return nil
	}
	i, last := r.rng.IntN(len(r.keys)), len(r.keys)-1
	a := r.keys[i]
	r.keys[i], r.keys = r.keys[last], r.keys[:last]
	delete(r.live, a)
	if err := r.s.Free(a); err != nil {
		return fmt.Errorf("free of %v: %w", a, err)
	}
	return r.refused(a)
}

// misuse frees an address that is not the start of a live block.
func (r *run) misuse() error {
	if len(r.keys) == 0 {
		return r.refused(0)
	}
	a := r.keys[r.rng.IntN(len(r.keys))] + 1 + device.Addr(r.rng.IntN(1<<12))
	if _, isBlock := r.live[a]; isBlock {
		return nil
	}
	return r.refused(a)
}

// refused frees a and expects a refusal.
func (r *run) refused(a device.Addr) error {
	if err := r.s.Free(a); !errors.Is(err, alloc.ErrInvalidFree) {
		return fmt.Errorf("illegal free of %v: %w", a, err)
	}
	return nil
}

// compare compares the live blocks, the free chunks and the largest free chunk with the walk.
func (r *run) compare() error {
	free := map[device.Addr]alloc.Chunk{}
	live, largest := 0, device.Size(0)
	for c := range r.s.Walk {
		switch c.State {
		case alloc.Live:
			live++
			req, ok := r.live[c.Addr]
			if !ok || c.Requested != req.Size || c.Tag != req.Tag || c.Stream != req.Stream || c.Size != r.Granted(req.Size) {
				return fmt.Errorf("walk shows %+v, requested was %+v", c, req)
			}
		case alloc.Free:
			free[c.Addr] = c
			largest = max(largest, c.Size)
		}
	}
	if live != len(r.live) {
		return fmt.Errorf("walk shows %d live blocks, there are %d", live, len(r.live))
	}
	if got := power.LargestFree(r.s); got != largest {
		return fmt.Errorf("largest free chunk is %d, the walk shows %d", got, largest)
	}
	return r.compareFree(free)
}

// compareFree compares the free chunks in search order with the free chunks of the walk.
func (r *run) compareFree(free map[device.Addr]alloc.Chunk) error {
	n := 0
	var err error
	power.WalkFree(r.s, func(c alloc.Chunk) bool {
		n++
		if free[c.Addr] != c {
			err = fmt.Errorf("search order shows %+v, the walk %+v", c, free[c.Addr])
		}
		return err == nil
	})
	if err == nil && n != len(free) {
		return fmt.Errorf("search order shows %d free chunks, the walk %d", n, len(free))
	}
	return err
}
