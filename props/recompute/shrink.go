package recompute

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// shrinker removes parts of a log that still fails.
type shrinker struct {
	best  Log
	tries int
	fails func(Log) bool
}

// shrink returns a smaller log that also fails. It removes runs of operations, lets readers of an
// operator read its input instead, drops parts of operators, and lowers numbers, until nothing
// helps or fails was called tries times.
func shrink(l Log, tries int, fails func(Log) bool) Log {
	s := &shrinker{l, tries, fails}
	for s.tries > 0 && (s.dropRuns() || s.bypass() || s.plain() || s.lower() || s.dropTwo()) {
	}
	return s.best
}

func (s *shrinker) try(l Log) bool {
	if s.tries--; s.tries < 0 || !s.fails(l) {
		return false
	}
	s.best = l
	return true
}

// edited returns a copy of the best log whose operations may be changed.
func (s *shrinker) edited() Log {
	l := Log{s.best.Budget, slices.Clone(s.best.Ops)}
	for i := range l.Ops {
		l.Ops[i].Outputs, l.Ops[i].Reads = slices.Clone(l.Ops[i].Outputs), slices.Clone(l.Ops[i].Reads)
	}
	return l
}

func (s *shrinker) dropRuns() (helped bool) {
	for n := max(1, len(s.best.Ops)/2); n > 0; n /= 2 {
		for i := len(s.best.Ops) - n; i >= 0; i-- {
			l := s.edited()
			l.Ops = slices.Delete(l.Ops, i, i+n)
			if s.try(l) {
				helped = true
				i = min(i, len(s.best.Ops)-n+1)
			}
		}
	}
	return helped
}

func (s *shrinker) dropTwo() bool {
	for i := range s.best.Ops {
		for j := i + 1; j < len(s.best.Ops); j++ {
			l := s.edited()
			l.Ops = slices.Delete(slices.Delete(l.Ops, j, j+1), i, i+1)
			if s.try(l) {
				return true
			}
		}
	}
	return false
}

// bypass removes an operator whose readers can read one of its inputs instead.
func (s *shrinker) bypass() (helped bool) {
	for i := len(s.best.Ops) - 1; i >= 0; i-- {
		for _, input := range s.best.Ops[i].Reads {
			l := s.edited()
			for _, out := range l.Ops[i].Outputs {
				for k := range l.Ops {
					for j, read := range l.Ops[k].Reads {
						if read == out.Name {
							l.Ops[k].Reads[j] = input
						}
					}
				}
			}
			l.Ops = slices.Delete(l.Ops, i, i+1)
			if s.try(l) {
				helped = true
				break
			}
		}
	}
	return helped
}

// plain drops the budget, and outputs, inputs, workspace and marks of operators.
func (s *shrinker) plain() (helped bool) {
	change := func(f func(*Log) bool) {
		if l := s.edited(); f(&l) && s.try(l) {
			helped = true
		}
	}
	change(func(l *Log) bool {
		limited := l.Budget != remat.Unlimited
		l.Budget = remat.Unlimited
		return limited
	})
	for i := range s.best.Ops {
		for k := len(s.best.Ops[i].Reads) - 1; k >= 0; k-- {
			change(func(l *Log) bool { l.Ops[i].Reads = slices.Delete(l.Ops[i].Reads, k, k+1); return true })
		}
		for k := len(s.best.Ops[i].Outputs) - 1; k >= 0; k-- {
			change(func(l *Log) bool {
				l.Ops[i].Outputs = slices.Delete(l.Ops[i].Outputs, k, k+1)
				return len(l.Ops[i].Outputs) > 0
			})
		}
		change(func(l *Log) bool {
			fixed := l.Ops[i].Fixed
			l.Ops[i].Fixed = false
			return fixed
		})
	}
	return helped
}

// lower makes numbers smaller, one at a time.
func (s *shrinker) lower() (helped bool) {
	size := func(of func(*Log) *device.Size) {
		for n := *of(&s.best); n > 0 && n != remat.Unlimited; n = *of(&s.best) {
			smaller := false
			for _, to := range []device.Size{0, n / 2, n - 1} {
				l := s.edited()
				if *of(&l) = to; s.try(l) {
					helped, smaller = true, true
					break
				}
			}
			if !smaller {
				return
			}
		}
	}
	size(func(l *Log) *device.Size { return &l.Budget })
	for i := range s.best.Ops {
		size(func(l *Log) *device.Size { return &l.Ops[i].Work })
		for k := range s.best.Ops[i].Outputs {
			size(func(l *Log) *device.Size { return &l.Ops[i].Outputs[k].Size })
		}
		for _, to := range []int64{0, 1} {
			if s.best.Ops[i].Time > to {
				l := s.edited()
				if l.Ops[i].Time = to; s.try(l) {
					helped = true
				}
			}
		}
	}
	return helped
}
