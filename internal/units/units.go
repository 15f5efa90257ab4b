// Package units formats figures for people: every table, sentence and picture prints a size, a
// time, a share or a count in the same form.
package units

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Bytes returns n with two decimals in the largest binary unit that leaves a digit before the
// point.
func Bytes(n device.Size) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	k := 0
	for k+1 < len(units) && n>>(10*(k+1)) != 0 {
		k++
	}
	if k == 0 {
		return strconv.FormatUint(uint64(n), 10) + " B"
	}
	return Fixed(float64(n)/float64(uint64(1)<<(10*k)), 2) + " " + units[k]
}

// Nanoseconds returns a time with two decimals in the largest of ns, µs, ms and s that leaves a
// digit before the point.
func Nanoseconds(ns uint64) string {
	switch {
	case ns < 1e3:
		return strconv.FormatUint(ns, 10) + " ns"
	case ns < 1e6:
		return Fixed(float64(ns)/1e3, 2) + " µs"
	case ns < 1e9:
		return Fixed(float64(ns)/1e6, 2) + " ms"
	}
	return Fixed(float64(ns)/1e9, 2) + " s"
}

// Percent returns a ratio as a percentage with one decimal.
func Percent(x float64) string { return Fixed(100*x, 1) + " %" }

// Fixed returns x with a fixed number of decimals.
func Fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// Count returns n with commas between the thousands.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Several returns a number with its noun, which takes an "s" unless the number is one.
func Several[N int | uint64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Printable returns s, quoted if it has control characters, so that a name from a file cannot send
// escape sequences to the terminal.
func Printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
