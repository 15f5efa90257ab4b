package grid

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// Bounds are lower bounds, in bytes, of the budget that a schedule needs with any heuristic and any
// memory.
type Bounds struct {
	Constant   device.Size `json:"constant_bytes"`    // constants, such as weights
	Bottleneck device.Size `json:"bottleneck_bytes"`  // inputs, outputs and workspace of the largest operator
	LowerBound device.Size `json:"lower_bound_bytes"` // no smaller budget suffices
}

// BoundsOf computes the bounds of a schedule in one pass over its steps.
func BoundsOf(s *remat.Schedule) Bounds {
	var b Bounds
	fixed := make([]bool, len(s.Storages)) // by storage: never evicted from now on
	seen := make([]int, len(s.Storages))   // by storage: the last operator that read it, counted from 1
	held := device.Size(0)                 // bytes of fixed storages
	hold := func(storage int32) {
		if !fixed[storage] {
			fixed[storage] = true
			held += s.Storages[storage].Size
		}
	}
	for _, step := range s.Steps {
		switch step.Kind {
		case remat.Compute:
			op := &s.Ops[step.Of]
			if op.Fixed && len(op.Args) == 0 {
				b.Constant += op.OutputBytes
			}
			need, more := op.OutputBytes+op.Workspace, op.OutputBytes+op.Workspace // more: bytes that are not fixed yet
			for _, a := range op.Args {
				n := s.Tensors[a].Storage
				if seen[n] == int(step.Of)+1 {
					continue
				}
				seen[n] = int(step.Of) + 1
				if need += s.Storages[n].Size; !fixed[n] {
					more += s.Storages[n].Size
				}
			}
			b.Bottleneck, b.LowerBound = max(b.Bottleneck, need), max(b.LowerBound, held+more)
			for t := op.First; op.Fixed && t < op.First+remat.Tensor(op.Outputs); t++ {
				hold(s.Tensors[t].Storage)
			}
		case remat.Pin:
			hold(s.Tensors[step.Of].Storage)
			b.LowerBound = max(b.LowerBound, held)
		}
	}
	return b
}
