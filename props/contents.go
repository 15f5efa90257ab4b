package props

import (
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device/sim"
)

// Filled returns the subject on a device with contents. Every block is filled when it is granted
// and compared when it is freed, and all blocks are compared after every request and every
// inspection ([wrap.Filled]). An arithmetic mistake then shows as corruption, and invariant I51 is
// checked first.
func (s Subject) Filled() Subject {
	if s.Device.Memory != sim.Filled {
		s.Device.Memory = sim.Filled
		s.Name += "/filled"
	}
	return s
}

// ByContents returns the filled subject, excused from every invariant except I51, so that mistakes
// show in the memory alone. I10 has no exceptions, but contents are checked before it.
func (s Subject) ByContents() Subject {
	s = s.Filled()
	s.Promises.Except = slices.Clone(s.Promises.Except)
	for n := range Numbers {
		if n != IContents {
			s.Promises.Except = append(s.Promises.Except, promise.Exception{Invariant: n.String(), Reason: "it is arithmetic"})
		}
	}
	return s
}

// corrupted checks invariant I51: a live block still has the contents that it was filled with. It
// also returns the invariant that an error names by itself: a plug-in is watched from outside, and
// caught in the call. It returns nil for any other answer.
func corrupted(answer error) error {
	if c, ok := errors.AsType[*wrap.Corruption](answer); ok {
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

func (r *runner) contents() error {
	if r.subject.Device.Memory != sim.Filled {
		return nil
	}
	return r.judge(corrupted(r.main.Check())) // its other findings are judged separately
}
