package slab

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// The values of Config.Classes.
const (
	ClassesPow2 = "pow2" // powers of two: up to half of a slot is lost
	ClassesK2   = "k2"   // two classes for each doubling: up to a third
	ClassesK4   = "k4"   // four: up to a fifth
	ClassesK8   = "k8"   // eight: up to a ninth
)

// perDoubling is how many classes a family has for each doubling.
func perDoubling(family string) (n device.Size, ok bool) {
	switch family {
	case ClassesPow2:
		return 1, true
	case ClassesK2:
		return 2, true
	case ClassesK4:
		return 4, true
	case ClassesK8:
		return 8, true
	}
	return 0, false
}

// Family returns the sizes of a family of classes, pow2, k2, k4 or k8, from quantum up to
// largest: as many equal steps for each doubling, in whole quanta. It fails for an unknown
// family.
func Family(family string, quantum, largest device.Size) ([]device.Size, error) {
	n, ok := perDoubling(family)
	if !ok {
		return nil, fmt.Errorf("slab: classes %q: want %q, %q, %q or %q", family, ClassesPow2, ClassesK2, ClassesK4, ClassesK8)
	}
	var all []device.Size
	for low := quantum; low != 0 && low <= largest; low <<= 1 {
		for step := range n {
			size := device.AlignUp(low+low/n*step+low%n*step/n, quantum)
			if size <= largest && (len(all) == 0 || size > all[len(all)-1]) {
				all = append(all, size)
			}
		}
	}
	return all, nil
}

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
		if n == 0 || n > mostSlots {
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
