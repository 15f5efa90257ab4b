package slab

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// Legal returns the classes of slabs of a given size for slots of the given sizes, ascending and
// without duplicates. Sizes are rounded up to whole quanta. A size whose slab would waste more than
// one part in waste at its end is raised to the smallest size that does not, with the same number
// of slots. A size without such a class, or with more than 4096 slots a slab, is left out.
//
// Precondition: quantum is a power of two, waste is at least 1.
func Legal(sizes []device.Size, slab, quantum, waste device.Size) (legal []device.Size) {
	most := slab / waste // left behind the last slot
	for _, size := range sizes {
		if size == 0 || size > slab {
			continue
		}
		size = device.AlignUp(size, quantum)
		n := slab / size
		if n == 0 || n > cells.MostSlots {
			continue
		}
		if slab%size > most {
			size = device.AlignUp((slab-most-1)/n+1, quantum)
		}
		if slab/size == n && slab%size <= most {
			legal = append(legal, size)
		}
	}
	slices.Sort(legal)
	return slices.Compact(legal)
}
