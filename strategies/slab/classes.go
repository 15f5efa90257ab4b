package slab

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// Legal returns the classes that slabs of a given size can have for slots of the given
// sizes, ascending and without doubles. A size is rounded up to whole quanta. One that would
// leave more than one part in waste behind its last slot is raised to the smallest that does
// not and has as many slots, which costs no slot. If there is none, or if a slab would have
// more than 4096 slots, the size is no legal class and left out.
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
