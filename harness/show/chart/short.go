package chart

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/internal/units"
)

// mostName bounds the characters of a drawn name.
const mostName = 36

// shortened returns names fit for drawing: control characters escaped, and long names cut in the
// middle, since names of settings differ at their ends. If cut names collide, their common part is
// left out instead. Names that still collide are numbered.
func shortened(names []string) map[string]string {
	same := map[string][]string{} // names by their cut form
	for _, n := range names {
		s := clipped(n)
		same[s] = append(same[s], n)
	}
	short := map[string]string{}
	taken := map[string]bool{}
	for _, n := range names {
		s := clipped(n)
		if group := same[s]; len(group) > 1 {
			s = withoutCommon(n, group)
		}
		unique := s
		for k := 2; taken[unique]; k++ {
			unique = fmt.Sprintf("%s (%d)", s, k)
		}
		short[n], taken[unique] = unique, true
	}
	return short
}

// clipped cuts the middle out of a long name.
func clipped(s string) string {
	if long := []rune(s); len(long) > mostName {
		const end = mostName / 2
		s = string(long[:mostName-end-1]) + "…" + string(long[len(long)-end:])
	}
	return units.Printable(s)
}

// withoutCommon returns a long name without the part common to a group, except for its beginning.
func withoutCommon(name string, group []string) string {
	long := []rune(name)
	common := len(long) // length of the common prefix
	for _, other := range group {
		for i, r := range []rune(other) {
			if i >= common || long[i] != r {
				common = min(common, i)
				break
			}
		}
	}
	const head, before = 10, 4 // characters kept of the prefix: at its start, and before the difference
	from := max(common-before, head)
	rest := long[min(from, len(long)):]
	if room := mostName - head - 2; len(rest) > room {
		rest = append(append([]rune(nil), rest[:room]...), '…')
	}
	return units.Printable(strings.TrimSpace(string(long[:head])) + "…" + string(rest))
}
