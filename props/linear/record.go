package linear

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Load configures the callers. Zero fields mean their defaults.
type Load struct {
	Callers    int         // goroutines; default 4
	Operations int         // calls by each of them; default 2500
	Size       device.Size // bytes of every request; default 256
	Seed       uint64      // of their choices; the order in which they are served is the scheduler's
	// Modest callers hold at most one block each and free only their own, so that with one block
	// for every second caller progress is always possible. It is for strategies that wait.
	Modest bool
	// Streams gives each caller a stream of its own. Each caller is a thread of its own anyway.
	Streams bool
	// Think is called by a caller between two calls; nil for nothing.
	Think func()
}

func (l Load) withDefaults() Load {
	l.Callers, l.Operations, l.Size = cmp.Or(l.Callers, 4), cmp.Or(l.Operations, 2500), cmp.Or(l.Size, 256)
	return l
}

// Kind is the call of an operation of a history.
type Kind uint8

// The kinds.
const (
	Alloc Kind = iota // a request
	Free              // a free
	Live              // Stats, of which only the number of live blocks counts
)

// Call is the input of an operation of a history.
type Call struct {
	Kind Kind        // which call
	Addr device.Addr // Free: the address
}

// Answer is the output of an operation of a history.
type Answer struct {
	Addr device.Addr // Alloc: the block granted
	Live int         // Live: how many blocks are live
	Err  error       // nil for success
}

// History is the operations of all callers, in no particular order.
type History []porcupine.Operation

// RunLoad runs the callers of a load on a strategy that is safe for concurrent use and returns
// their calls and answers. Times are taken from one counter, which every call advances when it
// begins and when it ends. The blocks that are live at the end stay so. If a call panics, so does
// RunLoad once all callers have ended.
func RunLoad(s alloc.Strategy, l Load) History {
	l = l.withDefaults()
	callers := make([]caller, l.Callers)
	var clock atomic.Int64
	var seen seenAddresses
	var all sync.WaitGroup
	for i := range callers {
		callers[i] = caller{
			Strategy: s, Load: l, id: i, clock: &clock, seen: &seen, rng: rand.New(rand.NewPCG(l.Seed, uint64(i))),
		}
		all.Go(callers[i].run)
	}
	all.Wait()
	var h History
	for i := range callers {
		if p := callers[i].panicked; p != nil {
			panic(p)
		}
		h = append(h, callers[i].history...)
	}
	return h
}

// seenAddresses are some of the addresses granted to any caller, so that callers can free blocks of
// others.
type seenAddresses [16]atomic.Uint64

type caller struct {
	alloc.Strategy
	Load
	id      int
	clock   *atomic.Int64
	seen    *seenAddresses
	rng     *rand.Rand
	mine    []device.Addr
	history History

	panicked any // by a call; nil for none
}

func (c *caller) run() {
	defer func() { c.panicked = recover() }()
	for range c.Operations {
		c.one()
		if c.Think != nil {
			c.Think()
		}
	}
	for c.Modest && len(c.mine) > 0 { // or else the others wait for ever
		c.free(0)
	}
}

// one makes a call: mostly a request or a free of an own block, sometimes a free of a foreign or
// dead block.
func (c *caller) one() {
	switch n := c.rng.IntN(20); {
	case n == 0:
		c.call(Call{Kind: Live}, func() Answer { return Answer{Live: c.Stats().Live} })
	case n < 4 && !c.Modest:
		if a := device.Addr(c.seen[c.rng.IntN(len(c.seen))].Load()); a != 0 {
			c.call(Call{Kind: Free, Addr: a}, func() Answer { return Answer{Err: c.Free(a)} })
		}
	case len(c.mine) > 0 && (c.Modest || n < 12):
		c.free(c.rng.IntN(len(c.mine)))
	default:
		got := c.call(Call{Kind: Alloc}, func() Answer {
			b, err := c.Alloc(c.request())
			return Answer{Addr: b.Addr, Err: err}
		})
		if got.Err == nil {
			c.mine = append(c.mine, got.Addr)
			c.seen[c.rng.IntN(len(c.seen))].Store(uint64(got.Addr))
		}
	}
}

func (c *caller) request() alloc.Request {
	r := alloc.Request{Size: c.Size, Origin: alloc.OriginOf(0, uint32(c.id)+1)}
	if c.Streams {
		r.Stream = device.Stream(c.id)
	}
	return r
}

// free frees block i of its own, which another caller may have freed already.
func (c *caller) free(i int) {
	a := c.mine[i]
	c.mine[i] = c.mine[len(c.mine)-1]
	c.mine = c.mine[:len(c.mine)-1]
	c.call(Call{Kind: Free, Addr: a}, func() Answer { return Answer{Err: c.Free(a)} })
}

// call makes a call and records it.
func (c *caller) call(what Call, do func() Answer) Answer {
	begin := c.clock.Add(1)
	got := do()
	c.history = append(c.history, porcupine.Operation{
		ClientId: c.id, Input: what, Call: begin, Output: got, Return: c.clock.Add(1),
	})
	return got
}
