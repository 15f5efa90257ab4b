package trace

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxLine is the longest line in bytes that a reader accepts: tags of 10 MB have been seen to be
// made on purpose, and a page shows them clipped.
const maxLine = 16 << 20

// Error is what is wrong with a trace file, and where.
type Error struct {
	File string // as it was named by the caller
	Line int    // counted from 1; 0 if no line is to blame
	Err  error  // what is wrong
}

// Error returns "file:line: what is wrong" in one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// watched hashes what is read through it and remembers the error that ended it. A scanner
// still returns the broken last line of a stream that fails; the memory lets the reader
// blame the stream and not that line.
type watched struct {
	r    io.Reader
	hash hash.Hash
	last byte // the last one that was read
	err  error
}

// Read implements io.Reader.
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

// clip quotes a piece of the file for an error message, shortened so that the message
// stays a readable line.
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

// parseUint reads a decimal number without sign. It does not allocate.
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
