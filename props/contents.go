package props

import (
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
)

// Filled returns the subject on a device that knows what is in its memory. Every block is
// filled when it is granted and compared when it is freed, and all of them after every
// request and every look ([alloc.Filled]), so that what is wrong by arithmetic shows as
// corruption: that, invariant I51, is then looked for first.
func (s Subject) Filled() Subject {
	if s.Device.Memory != sim.Filled {
		s.Device.Memory = sim.Filled
		s.Name += "/filled"
	}
	return s
}

// ByContents returns the filled subject, excused from every invariant but that of contents: what
// it breaks then shows in the memory alone, without any arithmetic. Only I10, which has no
// exceptions, may come first, and does not, because contents are looked at before it.
func (s Subject) ByContents() Subject {
	s = s.Filled()
	s.Promises.Except = slices.Clone(s.Promises.Except)
	for n := range Numbers {
		if n != IContents {
			s.Promises.Except = append(s.Promises.Except, alloc.Exception{Invariant: n.String(), Reason: "it is arithmetic"})
		}
	}
	return s
}

// corrupted checks invariant I51: what a live block was filled with is still there; and whatever
// invariant an answer itself says is broken: a strategy that is watched from outside, such as a
// plug-in, is caught in the call. It returns nil if an answer says nothing else.
func corrupted(answer error) error {
	if c, ok := errors.AsType[*alloc.Corruption](answer); ok {
		return violated(IContents, "%v", c)
	}
	if c, ok := errors.AsType[interface {
		error
		Invariant() string
	}](answer); ok {
		if n, known := ParseNumber(c.Invariant()); known {
			return violated(n, "%v", c)
		}
	}
	return nil
}

// contents looks into all live blocks, if they are filled.
func (r *runner) contents() error {
	if r.subject.Device.Memory != sim.Filled {
		return nil
	}
	return r.judge(corrupted(r.main.Check())) // what else it finds is looked at in its turn
}
