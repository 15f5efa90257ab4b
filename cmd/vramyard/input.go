package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
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

// buildable returns the error of a configuration that its strategy refuses. A device that
// is too small for the strategy is not the configuration's fault.
func buildable(s alloc.Setup) error {
	dev, err := sim.New(sim.Config{})
	if err != nil {
		return err
	}
	a, err := s.New(dev)
	if errors.Is(err, device.ErrOutOfMemory) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.Close()
}
