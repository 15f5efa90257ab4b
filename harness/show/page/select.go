package page

import "cmp"

// heaviest moves the n heaviest blocks to the front, in any order (quickselect). Ties are broken by
// birth and address, so that results are deterministic. Expected O(len(list)).
func heaviest(list []weighed, n int) {
	for len(list) > n && n > 0 {
		pivot := middle(&list[0], &list[len(list)/2], &list[len(list)-1])
		i, j := 0, len(list)-1
		for i <= j {
			for heavier(&list[i], &pivot) < 0 {
				i++
			}
			for heavier(&list[j], &pivot) > 0 {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			list = list[:j+1]
		case n >= i:
			list, n = list[i:], n-i
		default:
			return
		}
	}
}

// heavier compares blocks by weight, heaviest first.
func heavier(a, b *weighed) int {
	if c := cmp.Compare(b.weight, a.weight); c != 0 {
		return c
	}
	return byBirth(a.Rect, b.Rect)
}

// middle returns the median of three.
func middle(a, b, c *weighed) weighed {
	if heavier(a, b) > 0 {
		a, b = b, a
	}
	if heavier(b, c) <= 0 {
		return *b
	}
	if heavier(a, c) > 0 {
		return *a
	}
	return *c
}
