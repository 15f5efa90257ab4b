package props

import (
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// spanned checks invariant I75: it makes the calls again on a device that is too small or just
// large enough, and again at the ends of the span that device and strategy report there.
func (c *claims) spanned() error {
	need := c.machines[0].dev.Usage().PeakCharged
	n := need / 8 * device.Size(8-len(c.calls)%5)
	m, err := c.on(n)
	c.machines = append(c.machines, m)
	if err != nil || n == 0 || !power.Has(m.Strategy, power.PowerSpanned) {
		return nil // a device may be too small
	}
	answers := c.again(m)
	span, _ := power.CapacitySpan(m.Strategy)
	from, below, _ := m.dev.SameFor()
	span = span.Common(device.Span{From: from, Below: below})
	ends := []device.Size{max(span.From, 1), span.Below - 1}
	if span.Below == 0 {
		ends[1] = 2 * n
	}
	for _, end := range ends {
		if !span.Holds(end) || !span.Holds(n) || end == n {
			continue
		}
		other, err := c.on(end)
		c.machines = append(c.machines, other)
		if err != nil {
			return nil
		}
		for i, a := range c.again(other) {
			if b := answers[i]; !sameError(a.Err, b.Err) || a.Block.Size != b.Block.Size || a.Bytes != b.Bytes {
				return c.judge(violated(ISpan, "call %d, %v: %s answered %v on a device of %d bytes, and %v on one of %d, where "+
					"it says that it would do the same", i+1, c.calls[i].Call, c.subject.Name, b, uint64(n), a, uint64(end)))
			}
		}
		if a, b := other.dev.Usage(), m.dev.Usage(); a.Calls != b.Calls || a.PeakCharged != b.PeakCharged {
			return c.judge(violated(ISpan, "%s made the calls %v on a device of %d bytes, and %v on one of %d, where it says "+
				"that it would do the same", c.subject.Name, b.Calls, uint64(n), a.Calls, uint64(end)))
		}
	}
	return nil
}

// again makes the calls again on another machine, and returns its answers. It leaves out the calls
// about blocks that the machine did not grant, and mistakes, which name addresses.
func (c *claims) again(m *machine) []Answer {
	answers := make([]Answer, len(c.calls))
	at := map[uint64]device.Addr{} // by ID
	for i := range c.calls {
		call := c.calls[i].Call
		switch addr, live := at[call.ID]; call.Kind {
		case OpDoubleFree, OpInterior, OpForeign, OpNull:
			continue
		case OpFree, OpUse:
			if !live {
				continue
			}
			call.Addr, call.ref = addr, 0
		}
		c.step++
		c.pulse.beats.Add(1)
		m.limiter.begin()
		answers[i] = m.do(&call)
		switch {
		case call.Kind == OpAlloc && answers[i].Err == nil:
			at[call.ID] = answers[i].Block.Addr
		case call.Kind == OpFree:
			delete(at, call.ID)
		}
	}
	return answers
}
