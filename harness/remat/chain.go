package remat

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// chain is a schedule whose forward part is a chain: each operator has one result, and reads only
// constants and the result of the operator before it. Its operators are the links, numbered from 1.
//
// The other operators form the backward pass. They read the results in reverse order, at most two
// adjacent ones at a time. They are divided into phases: phase j starts at the first operator that
// reads result j, and its operators read results j and j-1 only.
type chain struct {
	s             *Schedule
	ops           []int32       // by link: its operator
	sizes         []device.Size // by link: bytes of its result
	freeAfter     [][]int32     // by operator: the links whose results are read by no later operator
	linkOf        []int32       // by storage: its link, or 0
	firstRunOther []device.Size // by link: resident bytes of other tensors when it first runs
	phases        []phase       // by link
}

// phase is the needs of a phase of the backward pass. Result j is called its own, result j-1 the
// one below. Bytes do not include the results of links.
type phase struct {
	readsOwn        bool        // an operator reads its own result
	readsBelow      bool        // an operator reads the result below
	readsBothFirst  bool        // the first operator that reads a result reads both
	seenOwn         bool        // while measuring: an operator that reads a result was seen
	seenBelow       bool        // while measuring: an operator that reads the result below was seen
	atOwn           device.Size // resident before the first operator that reads a result
	atBelow         device.Size // resident before the first operator that reads the result below
	peakBeforeBelow device.Size // peak of the operators before the first that reads the result below
	peakBoth        device.Size // peak of the operators from there to the last that reads its own result
	peakAfter       device.Size // peak of the operators after that
	lastRead        int32       // the last operator that reads its own result
}

// chainOf returns the chain of a schedule, or an error with the operator that breaks it.
func chainOf(s *Schedule) (*chain, error) {
	c := &chain{s: s, ops: []int32{none32}, sizes: []device.Size{0}, linkOf: make([]int32, len(s.Storages))}
	var end error // why the longest chain ends
	var rest []int32
	for _, step := range s.Steps {
		if step.Kind != Compute || s.Ops[step.Of].constant() {
			continue
		}
		if end == nil {
			end = c.checkLink(step.Of)
		}
		if end == nil {
			c.ops = append(c.ops, step.Of)
		} else {
			rest = append(rest, step.Of)
		}
	}
	if end == nil {
		end = errors.New("no operator reads the results in reverse order")
	}
	longest, why := c.ops, end
	for n := len(longest) - 1; n >= 2; n-- {
		c.ops = longest[:n+1]
		err := c.divide(append(append([]int32(nil), longest[n+1:]...), rest...))
		if err == nil {
			c.measure()
			return c, nil
		}
		if n == len(longest)-1 && !errors.Is(err, errOthers) {
			why = err
		}
	}
	return nil, fmt.Errorf("want a chain of operators that each read the result before: %w", why)
}

// checkLink returns an error if an operator cannot be the next link.
func (c *chain) checkLink(number int32) error {
	op := &c.s.Ops[number]
	is := func(what string) error { return fmt.Errorf("operator %d (%s) %s", number, clip(op.Name), what) }
	switch {
	case op.Fixed:
		return is("cannot be run again")
	case op.Outputs > 1:
		return is(fmt.Sprintf("has %d results", op.Outputs))
	case c.s.Storages[c.s.Tensors[op.First].Storage].Root != op.First:
		return is("returns a view")
	}
	before := c.ops[len(c.ops)-1]
	linked := before == none32
	for _, a := range op.Args {
		producer := c.s.Tensors[a].Op
		linked = linked || producer == before
		if !c.s.Ops[producer].constant() && producer != before {
			return is("reads a tensor that is not the result of the operator before it")
		}
	}
	if !linked {
		return is("does not read the result of the operator before it")
	}
	return nil
}

// errOthers: between the chain and its backward pass run more operators than in the chain, so the
// chain was cut too short.
var errOthers = errors.New("more operators outside the chain than in it")

// divide numbers the results of the links and divides the other operators into phases.
func (c *chain) divide(rest []int32) error {
	n := len(c.ops) - 1
	clear(c.linkOf)
	c.sizes, c.phases, c.freeAfter = c.sizes[:1], make([]phase, n+1), make([][]int32, len(c.s.Ops))
	for i := 1; i <= n; i++ {
		storage := c.s.Tensors[c.s.Ops[c.ops[i]].First].Storage
		c.linkOf[storage] = int32(i)
		c.sizes = append(c.sizes, c.s.Storages[storage].Size)
	}
	for _, step := range c.s.Steps {
		if (step.Kind == Pin || step.Kind == Drop) && c.linkOf[c.s.Tensors[step.Of].Storage] > 0 {
			op := c.s.Tensors[step.Of].Op
			return fmt.Errorf("the result of operator %d (%s) is kept or dropped by the log", op, clip(c.s.Ops[op].Name))
		}
	}
	at, between := int32(n), 0 // current phase; operators before the first that reads an earlier result
	for _, number := range rest {
		op := &c.s.Ops[number]
		low, high, err := c.reads(number, op)
		if err != nil {
			return err
		}
		if at == int32(n) && (high == 0 || low == int32(n)) {
			if between++; between > n {
				return errOthers
			}
		}
		switch {
		case high == 0:
			continue
		case high > at || high-low > 1:
			return fmt.Errorf("operator %d (%s) does not read results in reverse order", number, clip(op.Name))
		}
		at = high
		p := &c.phases[at]
		p.readsOwn, p.lastRead, p.readsBelow = true, number, p.readsBelow || low < high
	}
	last := none32
	for i := n; i >= 1; i-- {
		if c.phases[i].readsOwn {
			last = c.phases[i].lastRead
		}
		if below := i < n && c.phases[i+1].readsBelow; below && !c.phases[i].readsOwn {
			last = max(last, c.phases[i+1].lastRead)
		}
		if last == none32 {
			return fmt.Errorf("no operator reads the result of operator %d (%s) in reverse order", c.ops[i],
				clip(c.s.Ops[c.ops[i]].Name))
		}
		c.freeAfter[last] = append(c.freeAfter[last], int32(i))
	}
	return nil
}

// reads returns the lowest and the highest link whose result an operator reads, or 0 if it reads
// none.
func (c *chain) reads(number int32, op *Op) (low, high int32, err error) {
	for t := range op.outputs() {
		if c.linkOf[c.s.Tensors[t].Storage] > 0 {
			return 0, 0, fmt.Errorf("operator %d (%s) returns a view of a result", number, clip(op.Name))
		}
	}
	for _, a := range op.Args {
		if link := c.linkOf[c.s.Tensors[a].Storage]; link > 0 {
			high = max(high, link)
			if low == 0 || link < low {
				low = link
			}
		}
	}
	return low, high, nil
}

// measure walks the schedule and computes firstRunOther and the bytes of the phases.
func (c *chain) measure() {
	c.firstRunOther = make([]device.Size, len(c.ops))
	refs := make([]int32, len(c.s.Storages))
	used := device.Size(0)
	at, link := int32(len(c.ops)-1), 1
	for _, step := range c.s.Steps {
		storage := int32(0)
		if step.Kind != Compute {
			storage = c.s.Tensors[step.Of].Storage
		}
		switch step.Kind {
		case Compute:
			op := &c.s.Ops[step.Of]
			for t := range op.outputs() {
				refs[c.s.Tensors[t].Storage]++
			}
			if link < len(c.ops) && c.ops[link] == step.Of {
				c.firstRunOther[link] = used
				link++
				continue
			}
			at = c.measureOp(step.Of, at, used)
			used += op.OutputBytes
		case Retain:
			refs[storage]++
		case Release:
			if refs[storage]--; refs[storage] == 0 && c.linkOf[storage] == 0 {
				used -= c.s.Storages[storage].Size
			}
		case Pin, Drop:
		}
	}
}

// measureOp adds an operator of the backward pass to its phase, whose index it returns. At is the
// current phase, used the bytes that are resident before the operator, without results of links.
func (c *chain) measureOp(number, at int32, used device.Size) int32 {
	op := &c.s.Ops[number]
	low, high, _ := c.reads(number, op)
	if high > 0 && high < at {
		at = high
	}
	p := &c.phases[at]
	if high > 0 && !p.seenOwn {
		p.seenOwn, p.atOwn, p.readsBothFirst = true, used, low < high
	}
	if low < high && !p.seenBelow {
		p.seenBelow, p.atBelow = true, used
	}
	most := used + op.OutputBytes + op.Workspace
	switch {
	case p.readsOwn && number > p.lastRead:
		p.peakAfter = max(p.peakAfter, most)
	case p.readsBelow && !p.seenBelow:
		p.peakBeforeBelow = max(p.peakBeforeBelow, most)
	default:
		p.peakBoth = max(p.peakBoth, most)
	}
	return at
}

// constant reports whether an operator stands for a constant.
func (o *Op) constant() bool { return o.Fixed && len(o.Args) == 0 }
