package chart

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/internal/units"
)

// mostName is how many characters of a name are drawn.
const mostName = 36

// shortened returns names as they can be drawn: their control characters escaped, and no more than
// fits a row. Of a long one the middle is left out, because names of settings differ at their ends.
// Where that would make several the same, the common part is left out instead; names that still are
// the same get numbers.
func shortened(names []string) map[string]string {
	same := map[string][]string{} // names that become one, by that
	for _, n := range names {
		s := clipped(n)
		same[s] = append(same[s], n)
	}
	short := map[string]string{}
	taken := map[string]bool{}
	for _, n := range names {
		s := clipped(n)
		if group := same[s]; len(group) > 1 {
			s = apart(n, group)
		}
		unique := s
		for k := 2; taken[unique]; k++ {
			unique = fmt.Sprintf("%s (%d)", s, k)
		}
		short[n], taken[unique] = unique, true
	}
	return short
}

// clipped returns the beginning and the end of a name.
func clipped(s string) string {
	if long := []rune(s); len(long) > mostName {
		const end = mostName / 2
		s = string(long[:mostName-end-1]) + "…" + string(long[len(long)-end:])
	}
	return units.Printable(s)
}

// apart returns the part of a long name from where it differs from the others of a group, behind
// its beginning.
func apart(name string, group []string) string {
	long := []rune(name)
	common := len(long) // characters with which all begin
	for _, other := range group {
		for i, r := range []rune(other) {
			if i >= common || long[i] != r {
				common = min(common, i)
				break
			}
		}
	}
	const head, before = 10, 4 // of the name, and in front of the difference
	from := max(common-before, head)
	rest := long[min(from, len(long)):]
	if room := mostName - head - 2; len(rest) > room {
		rest = append(append([]rune(nil), rest[:room]...), '…')
	}
	return units.Printable(strings.TrimSpace(string(long[:head])) + "…" + string(rest))
}
