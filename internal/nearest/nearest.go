// Package nearest finds the known name closest to a mistyped one.
package nearest

import (
	"strings"
	"unicode/utf8"
)

// Name returns the known name nearest to another, or "" if none is near. A name that differs in
// case only is nearest, then names with edits (inserted, deleted, replaced or swapped letters), at
// most one edit for three letters. Last come names that contain the other, such as
// "caching:expandable" for "expandable". Ties go to the first name.
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

// Typo returns the first known name that another one probably means: it differs in case only, or by
// one edit; "" if none does.
func Typo(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
	for _, k := range known {
		if name != k && (strings.EqualFold(name, k) || distance([]rune(name), []rune(k)) == 1) {
			return k
		}
	}
	return ""
}

// longest is the most letters of a name that is compared: a longer one is not a typing error.
const longest = 100

// Want returns the end of an error about an unknown name: the nearest known name, if any, and the
// list of all.
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

// distance returns the optimal string alignment distance: the least number of letters to insert,
// delete, replace or swap with their neighbour, without editing a letter twice.
func distance(a, b []rune) int {
	// three rows of the table of distances between prefixes of a and b: the current one and the two
	// before it
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
