// Package nearest finds the known name closest to a mistyped one.
package nearest

import (
	"strings"
	"unicode/utf8"
)

// Name returns the known name nearest to another, or "" if none is near. Equal but for case is
// nearest, then a few letters inserted, left out, replaced or swapped: at most one in three. Last
// come names that contain the other as a part, such as "caching:expandable" for "expandable". Among
// equals the first wins.
func Name(name string, known []string) string {
	wanted := strings.ToLower(name)
	letters := utf8.RuneCountInString(wanted)
	if letters == 0 || letters > longest {
		return ""
	}
	part := letters / 3 // the score of names that contain the other
	best, least := "", part+1
	for _, k := range known {
		lower := strings.ToLower(k)
		score := distance([]rune(wanted), []rune(lower))
		if score > part && letters >= 3 && strings.Contains(lower, wanted) {
			score = part
		}
		if score < least {
			best, least = k, score
		}
	}
	return best
}

// longest is the most letters of a name that is compared with known ones; a longer one is no slip.
const longest = 100

// Want returns what an error about an unknown name says was wanted: the nearest known name, if
// there is one, and all of them.
func Want(name string, known []string) string {
	return Hint(name, known) + "want one of " + strings.Join(known, ", ")
}

// Hint returns a question for the nearest known name, such as `did you mean "bfc"? `, or "" if none
// is near.
func Hint(name string, known []string) string {
	if near := Name(name, known); near != "" {
		return `did you mean "` + near + `"? `
	}
	return ""
}

// distance returns how many letters have to be inserted, left out, replaced or swapped with their
// neighbour to make one name the other. No letter is changed twice.
func distance(a, b []rune) int {
	// rows of the table of distances between beginnings of a and of b: the two before the current one,
	// and it
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
