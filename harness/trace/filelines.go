package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// Lines reads a text file that goes with a trace, line by line and within the bounds of [Read]:
// compressed or not, with line ends of any system, no line longer than 16 MiB, no NUL byte.
type Lines struct {
	src     *source
	release func()   // of what decompresses
	file    *os.File // nil where the caller has it
	memory  *budget.Budget
}

// OpenLines opens a file whose content may take as much memory as a budget has. Its errors are those of [Open].
func OpenLines(path string, memory *budget.Budget) (*Lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	l, err := NewLines(f, path, memory)
	if err != nil {
		_ = f.Close() // only read from: nothing can be lost
		return nil, err
	}
	l.file = f
	return l, nil
}

// NewLines is [OpenLines] for a stream. name is the file's name for messages.
func NewLines(r io.Reader, name string, memory *budget.Budget) (*Lines, error) {
	plain, err := fileio.NewReader(r)
	if err != nil {
		return nil, fileError(name, err)
	}
	return &Lines{src: newSource(name, plain, sha256.New()), release: plain.Close, memory: memory}, nil
}

// Next returns the next line without its ending, or nil at the end of the file. The line is valid
// until the next call.
func (l *Lines) Next() ([]byte, error) { return l.src.next() }

// Memory returns the budget of the content. Lines takes nothing from it.
func (l *Lines) Memory() *budget.Budget { return l.memory }

// Line returns the number of the line that Next returned last, counted from 1.
func (l *Lines) Line() int { return l.src.num }

// Blame returns an [*Error] that says what is wrong with a line.
func (l *Lines) Blame(line int, err error) error {
	return &Error{File: l.src.file, Line: line, Err: err}
}

// Hash returns the SHA-256 of the decompressed text, in hexadecimal, once Next has come to its end.
func (l *Lines) Hash() string { return hex.EncodeToString(l.src.in.hash.Sum(nil)) }

// Doubt returns an [*Error] if the last line has no line end, once Next has come to its end: the file may have been cut
// within it.
func (l *Lines) Doubt() error { return l.src.doubt() }

// Close ends the reading.
func (l *Lines) Close() {
	l.release()
	if l.file != nil {
		_ = l.file.Close() // only read from: nothing can be lost
	}
}
