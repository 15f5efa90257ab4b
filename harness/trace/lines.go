package trace

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxLine is the maximum length of a line in bytes. Tags of 10 MB occur in crafted files; pages
// show them clipped.
const maxLine = 16 << 20

// Error is an error in a trace file.
type Error struct {
	File string // name given by the caller
	Line int    // counted from 1; 0 for the whole file
	Err  error  // the cause
}

// Error returns "file:line: cause" in one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// watched hashes the data read through it and records the error that ended it. A scanner still
// returns the incomplete last line of a stream that fails; the recorded error lets the reader
// report the stream instead of that line.
type watched struct {
	r    io.Reader
	hash hash.Hash
	last byte // the last byte read
	err  error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.hash.Write(p[:n])
	if n > 0 {
		w.last = p[n-1]
	}
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

var (
	errLong = fmt.Errorf("line is longer than %d bytes", maxLine)
	errNUL  = errors.New("NUL byte: this is no text file")
	errOpen = errors.New("the last line has no line end: if the file was cut, its last number may have lost digits")
	bom     = []byte("\xef\xbb\xbf")
)

// clip quotes a piece of the file for an error message, shortened to keep the message readable.
func clip(b []byte) string {
	const most = 40
	if len(b) <= most {
		return strconv.Quote(string(b))
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return strconv.Quote(string(b[:cut])) + "…"
}

// parseUint parses an unsigned decimal number without allocating.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 {
			return 0, false
		}
		if n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
