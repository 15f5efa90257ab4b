package props

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Call is an operation resolved to a block, an address and numbers.
type Call struct {
	Op
	ID      uint64        // allocation that is requested, freed or used; 0 for none
	Request alloc.Request // OpAlloc
	Addr    device.Addr   // frees, OpUse
	Count   uint64        // OpFrontier: frees; OpFault: device calls

	ref    uint32      // frees: the reference to free by; 0 to free by address
	nth    int         // OpFree, OpInterior, OpUse: index of the block among the live ones by age
	inside device.Size // OpInterior: distance of the address from the start of the block
}

// Answer is the result of a call.
type Answer struct {
	Block alloc.Block // OpAlloc
	Bytes device.Size // OpTrim, OpPoll
	Err   error       // nil for success
}

// String returns the call as a line of a trace, with addresses instead of picks.
func (c Call) String() string {
	switch c.Kind {
	case OpAlloc:
		r := c.Request
		o := Op{Size: r.Size, Align: r.Align, Stream: r.Stream, Hint: r.Hint, Before: r.Before}
		return fmt.Sprintf("%v (allocation %d)", o, r.ID)
	case OpFree, OpDoubleFree, OpInterior, OpForeign, OpNull:
		return fmt.Sprintf("f %v", c.Addr)
	case OpFrontier:
		return fmt.Sprintf("frontier %d", c.Count)
	case OpUse:
		return fmt.Sprintf("use %v by stream %d", c.Addr, uint64(c.Stream))
	}
	return c.Op.String()
}

// Closes reports whether the call closes the strategy.
func (c Call) Closes() bool { return c.Kind == opClose }

// String returns the answer in words.
func (a Answer) String() string {
	switch {
	case a.Err != nil:
		return quoted(a.Err)
	case a.Block.Size != 0:
		return "block " + textOf(a.Block).String()
	case a.Bytes != 0:
		return fmt.Sprintf("%d bytes", uint64(a.Bytes))
	}
	return "success"
}

func quoted(err error) string {
	if err == nil {
		return "success"
	}
	return `"` + err.Error() + `"`
}

type blockText device.Region

// String returns the block as address+size.
func (b blockText) String() string { return fmt.Sprintf("%v+%d", b.Addr, uint64(b.Size)) }

func textOf(b alloc.Block) blockText { return blockText{b.Addr, b.Size} }

// wrong reports whether the operation frees an address at which no live block starts.
func (k Kind) wrong() bool { return k >= OpDoubleFree && k <= OpNull }

// calls reports whether the operation is a call of the strategy. The others act on its device.
func (k Kind) calls() bool { return kinds[k].method != "" }

func (c *Call) event() trace.Event {
	e := trace.Event{Kind: kinds[c.Kind].event, ID: c.ID, Stream: c.Stream, Arg: c.Count}
	switch c.Kind {
	case OpAlloc:
		r := &c.Request
		e.Size, e.Align, e.Stream, e.Hint, e.Arg = r.Size, r.Align, r.Stream, r.Hint, r.Before
		e.Site, e.Thread, e.Life = r.Origin.Site(), r.Origin.Thread(), r.Origin.Lifetime()
	case OpInterior:
		e.Size = c.inside
	case OpForeign:
		e.Arg = uint64(c.Addr)
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		e.Arg = uint64(c.Pool)
	}
	return e
}

// kindOf returns the kind of operation that an event records. One kind represents all frees of
// wrong addresses.
func kindOf(e trace.Kind) Kind {
	switch e {
	case trace.LiveAtStart:
		return OpAlloc
	case trace.Completed:
		return OpFree
	}
	for k := range kinds {
		if kinds[k].event == e {
			return Kind(k)
		}
	}
	return opClose
}

// do makes a call on the instance. It is the only place that does.
func (m *machine) do(c *Call) Answer {
	if m.watch != nil && c.Kind.calls() {
		seen := *c // so that only a watched call takes memory from the heap
		return m.watch(seen, func() Answer { return m.execute(&seen) })
	}
	return m.execute(c)
}

func (m *machine) execute(c *Call) (a Answer) {
	switch c.Kind {
	case OpAlloc:
		if a.Block, a.Err = m.Alloc(c.Request); a.Err == nil {
			m.align(a.Block.Addr, c.Request.Align)
		}
	case OpFree, OpDoubleFree, OpInterior, OpForeign, OpNull:
		if c.ref == 0 {
			a.Err = m.Free(c.Addr)
		} else {
			a.Err = power.FreeRef(m.Strategy, alloc.Block{Addr: c.Addr, Ref: c.ref})
		}
	case OpTrim:
		a.Bytes, a.Err = power.Trim(m.Strategy)
	case OpFrontier:
		a.Err = power.SetFrontier(m.Strategy, c.Count)
	case OpClear:
		a.Err = power.ClearStats(m.Strategy)
	case OpFault:
		m.faults.FailNext(c.Count)
	case OpUse:
		a.Err = power.RecordStream(m.Strategy, c.Addr, c.Stream)
	case OpDrain:
		a.Err = m.limiter.Drain(c.Stream)
	case OpPoll:
		a.Bytes, a.Err = power.Poll(m.Strategy)
	case OpPoolBegin:
		a.Err = power.BeginPool(m.Strategy, c.Pool, c.Stream)
	case OpPoolEnd:
		a.Err = power.EndPool(m.Strategy, c.Pool)
	case OpPoolRelease:
		a.Err = power.ReleasePool(m.Strategy, c.Pool)
	case OpConf:
		a.Err = power.Configure(m.Strategy, c.Conf)
	case opClose:
		a.Err = m.Close()
	}
	return a
}

// agreed checks invariant I31: two instances gave the same answer to the same call.
func agreed(c *Call, a, b Answer) error {
	if sameError(a.Err, b.Err) && (a.Err != nil || a == b) {
		return nil
	}
	name := kinds[c.Kind].method
	if c.Kind >= OpPoolBegin {
		name = c.Op.String()
	}
	return violated(IDeterminism, "%s: one instance answered %v, another %v", name, a, b)
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}
