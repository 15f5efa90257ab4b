package trace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// Lines reads a text file line by line within the limits of [Read]: compressed or not, with any
// line endings, no line longer than 16 MiB, no NUL byte.
type Lines struct {
	name   string // name given by the caller
	scan   *bufio.Scanner
	in     *watched
	num    int            // number of the line last returned
	plain  *fileio.Stream // the decompressor
	file   *os.File       // nil if the caller owns the file
	memory *budget.Budget
}

// OpenLines opens a file. Its content is charged to memory by the caller. Errors are those of
// [Open].
func OpenLines(path string, memory *budget.Budget) (*Lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	l, err := NewLines(f, path, memory)
	if err != nil {
		_ = f.Close() // read only: no error matters
		return nil, err
	}
	l.file = f
	return l, nil
}

// NewLines is [OpenLines] for a stream. name is the file's name for messages.
func NewLines(r io.Reader, name string, memory *budget.Budget) (*Lines, error) {
	plain, err := fileio.NewReader(r)
	if err != nil {
		return nil, FileError(name, err)
	}
	in := &watched{r: plain, hash: sha256.New()}
	scan := bufio.NewScanner(in)
	// The longest line, its ending, and one byte to detect longer lines.
	scan.Buffer(make([]byte, 0, 1<<16), maxLine+3)
	return &Lines{name: name, scan: scan, in: in, plain: plain, memory: memory}, nil
}

// Next returns the next line without its ending, or nil at the end of the file. The line is valid
// until the next call.
func (l *Lines) Next() ([]byte, error) {
	ok := l.scan.Scan()
	l.num++
	if l.in.err != nil {
		return nil, l.errorf(l.in.err)
	}
	if !ok {
		if err := l.scan.Err(); errors.Is(err, bufio.ErrTooLong) {
			return nil, l.errorf(errLong)
		} else if err != nil {
			return nil, l.errorf(err)
		}
		return nil, nil
	}
	line := l.scan.Bytes()
	if len(line) > maxLine {
		return nil, l.errorf(errLong)
	}
	if l.num == 1 {
		line = bytes.TrimPrefix(line, bom)
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, l.errorf(errNUL)
	}
	if line == nil {
		line = []byte{} // nil would mean the end
	}
	return line, nil
}

// Memory returns the budget of the content. Lines itself charges nothing to it.
func (l *Lines) Memory() *budget.Budget { return l.memory }

// Line returns the number of the line that Next returned last, counted from 1.
func (l *Lines) Line() int { return l.num }

// ErrorAt returns an [*Error] at a line.
func (l *Lines) ErrorAt(line int, err error) error {
	return &Error{File: l.name, Line: line, Err: err}
}

func (l *Lines) errorf(err error) error { return l.ErrorAt(l.num, err) }

// Hash returns the SHA-256 of the decompressed text, in hexadecimal. Call it after Next has
// returned nil.
func (l *Lines) Hash() string { return hex.EncodeToString(l.in.hash.Sum(nil)) }

// Truncated returns an [*Error] if the last line has no line ending, because the file may have been
// truncated. Call it after Next has returned nil.
func (l *Lines) Truncated() error {
	if l.num == 1 || l.in.last == '\n' {
		return nil
	}
	return l.ErrorAt(l.num-1, errOpen)
}

// Close releases the decompressor, and closes the file that OpenLines opened.
func (l *Lines) Close() {
	l.plain.Close()
	if l.file != nil {
		_ = l.file.Close() // read only: no error matters
	}
}
