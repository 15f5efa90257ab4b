package pgmo

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// mostSteps bounds the steps of a plan, to about a tenth of a second.
const mostSteps = 1 << 26

// buffer is a block to place.
type buffer struct {
	birth, death int // it lives from its birth up to, but not including, its death
	size         device.Size
	offset       device.Size // result
}

// line is an offset line: bytes below its height are used at some moment of its time.
type line struct {
	from, to int
	height   device.Size
}

// arrange sets the offsets of buffers by the heuristic of the paper, and returns the height. It
// reports whether the steps sufficed.
func arrange(buffers []buffer, steps int) (height device.Size, ok bool) {
	left := make([]*buffer, len(buffers)) // the unplaced ones in the order of preference
	last := 0
	for i := range buffers {
		left[i] = &buffers[i]
		last = max(last, left[i].death)
	}
	slices.SortStableFunc(left, func(a, b *buffer) int {
		return cmp.Or(cmp.Compare(b.death-b.birth, a.death-a.birth), cmp.Compare(b.size, a.size))
	})
	lines := []line{{0, last, 0}}
	for len(left) > 0 {
		at := 0
		for i := range lines {
			if lines[i].height < lines[at].height {
				at = i
			}
		}
		l := lines[at]
		steps -= len(lines)
		next := slices.IndexFunc(left, func(b *buffer) bool {
			steps--
			return l.from <= b.birth && b.death <= l.to
		})
		if steps < 0 {
			return 0, false
		}
		if next < 0 {
			lines = lift(lines, at)
			continue
		}
		b := left[next]
		left = slices.Delete(left, next, next+1)
		b.offset = l.height
		height = max(height, l.height+b.size)
		lines = slices.Replace(lines, at, at+1, parts(l, b)...)
	}
	return height, true
}

// parts returns the lines that replace a line when a buffer is put on it.
func parts(l line, b *buffer) (all []line) {
	for _, p := range [...]line{
		{l.from, b.birth, l.height}, {b.birth, b.death, l.height + b.size}, {b.death, l.to, l.height},
	} {
		if p.from < p.to {
			all = append(all, p)
		}
	}
	return all
}

// lift raises a line to its lower neighbor and joins both.
func lift(lines []line, at int) []line {
	other := at - 1
	if at == 0 || at+1 < len(lines) && lines[at+1].height < lines[at-1].height {
		other = at + 1
	}
	low, high := min(at, other), max(at, other)
	lines[low] = line{lines[low].from, lines[high].to, lines[other].height}
	return slices.Delete(lines, high, high+1)
}
