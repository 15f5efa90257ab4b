package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/vramyard/vramyard/harness/recorded"
	"github.com/vramyard/vramyard/harness/trace"
)

var (
	errCapacity     = errors.New("want more than 0 bytes")
	errNoStrategies = errors.New("want at least one")
)

// flagError says which flag an error belongs to.
func flagError(flag string, err error) error { return fmt.Errorf("--%s: %w", flag, err) }

// openTrace reads a file, standard input for "-", or, if there is no such file, the trace
// of that name inside the program.
func openTrace(path, dialect string, stdin io.Reader) (*trace.Trace, error) {
	o := trace.Options{Dialect: dialect}
	if path == "-" {
		return trace.Read(stdin, "stdin", o)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && slices.Contains(recorded.Names(), path) {
		return recorded.Open(path)
	}
	return trace.Open(path, o)
}
