package grid

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// Bounds say below which budget no heuristic can complete a schedule in any memory. Sizes are
// bytes.
type Bounds struct {
	Constant   device.Size `json:"constant_bytes"`    // what is there for ever, such as weights
	Bottleneck device.Size `json:"bottleneck_bytes"`  // most that one operator reads and makes
	Lower      device.Size `json:"lower_bound_bytes"` // no smaller budget suffices
}

// BoundsOf returns the bounds of a schedule.
func BoundsOf(s *remat.Schedule) Bounds {
	var b Bounds
	fixed := make([]bool, len(s.Storages)) // for ever
	seen := make([]int, len(s.Storages))   // by the operator with this number, counted from one
	held := device.Size(0)
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
				b.Constant += op.Need
			}
			need, more := op.Need+op.Workspace, op.Need+op.Workspace // more: beside what is there for ever
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
			b.Bottleneck, b.Lower = max(b.Bottleneck, need), max(b.Lower, held+more)
			for t := op.First; op.Fixed && t < op.First+remat.Tensor(op.Outputs); t++ {
				hold(s.Tensors[t].Storage)
			}
		case remat.Pin:
			hold(s.Tensors[step.Of].Storage)
			b.Lower = max(b.Lower, held)
		}
	}
	return b
}
