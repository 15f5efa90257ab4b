package cells

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// The values of Config.Classes.
const (
	ClassesPow2 = "pow2" // powers of two: up to half of a slot is lost
	ClassesK2   = "k2"   // two classes for each doubling: up to a third
	ClassesK4   = "k4"   // four: up to a fifth
	ClassesK8   = "k8"   // eight: up to a ninth
)

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

// Family returns the sizes of a family of classes in whole quanta, from quantum up to largest. It
// fails for an unknown family.
func Family(family string, quantum, largest device.Size) ([]device.Size, error) {
	n, ok := perDoubling(family)
	if !ok {
		return nil, fmt.Errorf("slab: classes %q: want %q, %q, %q or %q", family, ClassesPow2, ClassesK2,
			ClassesK4, ClassesK8)
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
