package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/formats"
	"github.com/vramyard/vramyard/harness/recorded"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/outfile"
)

var (
	errNoStrategies = errors.New("want at least one")
	errStdinTwice   = errors.New("standard input can be read only once")
)

// flagError says which flag an error belongs to.
func flagError(flag string, err error) error { return fmt.Errorf("--%s: %w", flag, err) }

// output is a flag that names a file to write, or an argument that does, which has no flag.
type output struct {
	flag, path string
	text       bool // lines that may follow others on standard output
}

// checkOutputs refuses outputs before the work begins: those that would overwrite each other or a file that is
// read, those whose folder cannot be written to, and those whose ending promises another form.
func checkOutputs(inputs []string, outputs ...output) error {
	for i, o := range outputs {
		if o.path == "" && o.flag != "" {
			continue
		}
		for _, in := range inputs {
			if o.path != "-" && sameFile(o.path, in) {
				err := fmt.Errorf("%s is a file to read", o.path)
				if o.flag == "" {
					return err
				}
				return flagError(o.flag, err)
			}
		}
		for _, other := range outputs[:i] {
			if sameFile(o.path, other.path) && !(o.path == "-" && o.text && other.text) {
				return flagError(o.flag, fmt.Errorf("%s is where --%s is written", o.path, other.flag))
			}
		}
		err := outfile.Check(o.path)
		if want := endings[o.flag]; err == nil && len(want) > 0 {
			err = checkEnding(o.path, want)
		}
		if err != nil && o.flag != "" {
			err = flagError(o.flag, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameFile reports whether two paths lead to one file, which need not exist.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	absX, errX := filepath.Abs(a)
	absY, errY := filepath.Abs(b)
	return errX == nil && errY == nil && absX == absY
}

// onceFromStdin refuses standard input as more than one trace.
func onceFromStdin(paths []string) error {
	if i := slices.Index(paths, "-"); i >= 0 && slices.Contains(paths[i+1:], "-") {
		return errStdinTwice
	}
	return nil
}

// addPart adds the flag that says what to read of a file that holds more than one trace.
func addPart(c *cobra.Command, o *formats.Options) {
	c.Flags().StringVar(&o.Part, "part", "", "device or allocator to take from a file that has several")
}

// addSource adds the flags that say how to read a trace.
func addSource(c *cobra.Command, o *formats.Options) {
	c.Flags().StringVar(&o.Dialect, "dialect", "", "form of the trace if its content does not tell: bfc, xdl or torch")
	addPart(c, o)
}

// openSource is openTrace for those who need no more than to walk the trace: a long one stays in its
// file, if that can be.
func openSource(path string, o formats.Options, stdin io.Reader) (trace.Source, error) {
	if _, err := os.Stat(path); path == "-" || err != nil {
		return openTrace(path, o, stdin)
	}
	return formats.OpenSource(path, o)
}

// openTrace reads a file of any known format, standard input for "-", or, if there is no such
// file, the trace of that name inside the program.
func openTrace(path string, o formats.Options, stdin io.Reader) (*trace.Trace, error) {
	if path == "-" {
		return formats.Read(stdin, "stdin", o)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if slices.Contains(recorded.Names(), path) {
			return recorded.Open(path)
		}
		if near := nearest.Name(path, recorded.Names()); near != "" {
			return nil, fmt.Errorf("%s: no such file: did you mean %q, a trace inside the program?", path, near)
		}
	}
	return formats.Open(path, o)
}
