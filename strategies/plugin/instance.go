package plugin

import (
	"strings"
	"unicode"

	"github.com/vramyard/vramyard/device/standin"
)

// reply is the result of a call.
type reply struct {
	result  uint64 // an address
	extra   uint64
	verdict uint64
	ns      uint64 // nanoseconds that the call took in the plug-in
}

// outcome is how a call ended.
type outcome uint8

const (
	returned outcome = iota // with a reply
	ended                   // the process of the instance has ended
	timedOut                // no reply in time
)

// serveFunc answers a device call of the plug-in.
type serveFunc func(op standin.Op, arg [4]uint64) ([2]uint64, standin.Answer)

// maxText in bytes bounds the plug-in's text in a message.
const maxText = 300

// lastLine returns the last line of a text that contains a letter, at most maxText bytes of it.
func lastLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); strings.ContainsFunc(line, unicode.IsLetter) {
			return line[:min(len(line), maxText)]
		}
	}
	return ""
}

// cString returns a null-terminated text, at most maxText bytes of it.
func cString(text []byte) string {
	s, _, _ := strings.Cut(string(text), "\x00")
	return s[:min(len(s), maxText)]
}
