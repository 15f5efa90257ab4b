package plugin

import (
	"strings"
	"unicode"
)

// reply is what a call returned.
type reply struct {
	result  uint64 // an address
	extra   uint64
	verdict uint64
	ns      uint64 // that the call took in the plug-in
}

// outcome is what became of a call.
type outcome uint8

const (
	returned outcome = iota // there is a reply
	ended                   // the process of the instance has ended
	overdue                 // there was no reply in time
)

// serveFunc answers what a plug-in asks the device.
type serveFunc func(op deviceOp, arg [4]uint64) ([2]uint64, deviceAnswer)

// mostLine bounds in bytes what a message holds of a text of the plug-in's.
const mostLine = 300

// lastLine returns the last line of a text with a letter in it, cut to a sensible length.
func lastLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); strings.ContainsFunc(line, unicode.IsLetter) {
			return line[:min(len(line), mostLine)]
		}
	}
	return ""
}

// untilZero returns a text of C.
func untilZero(text []byte) string {
	s, _, _ := strings.Cut(string(text), "\x00")
	return s[:min(len(s), mostLine)]
}
