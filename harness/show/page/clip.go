package page

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostText is the most characters that are shown of a text out of a file.
const mostText = 200

// clip returns a text out of a file as it is shown: characters that control something are replaced, what is
// no UTF-8 too, and what is too long is cut.
func clip(s string) string { return clipTo(s, mostText) }

// clipTo is clip for texts of at most so many characters.
func clipTo(s string, most int) string {
	var b strings.Builder
	n := 0
	for len(s) > 0 {
		if n == most {
			b.WriteRune('…')
			break
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
