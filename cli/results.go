package cli

import (
	"errors"
	"io"
	"slices"

	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/internal/fileio"
)

// resultFile is a file that a command writes, standard output if its path is "-", and nothing if that is "".
type resultFile struct {
	path  string
	fill  func(io.Writer) error
	words bool // text for people, which fits the window of a terminal
}

// jsonFile returns the file that holds a value as JSON.
func jsonFile(path string, v any) resultFile {
	return resultFile{path: path, fill: func(w io.Writer) error { return encodeJSON(w, v) }}
}

// writeResults prints the tables of a command with show, unless one of the files takes standard output. Then it
// writes the files. Errors: of show, in which case no file is written; of [writeFiles].
func writeResults(stdout io.Writer, show func(io.Writer) error, files ...resultFile) error {
	if !slices.ContainsFunc(files, func(f resultFile) bool { return f.path == "-" }) {
		if err := fileio.Write("-", stdout, func(w io.Writer) error { return show(report.Over(stdout, w)) }); err != nil {
			return err
		}
	}
	return writeFiles(stdout, files...)
}

// writeFiles writes files. One that cannot be written does not keep the others from being written; the errors
// are joined.
func writeFiles(stdout io.Writer, files ...resultFile) error {
	var errs []error
	for _, f := range files {
		to := document(stdout)
		if f.words {
			to = stdout
		}
		if f.path != "" {
			errs = append(errs, fileio.Write(f.path, to, f.fill))
		}
	}
	return errors.Join(errs...)
}

// latch is a writer that keeps its first error to itself, so that the work that writes to it goes on.
type latch struct {
	io.Writer
	err error
}

// Write implements [io.Writer].
func (l *latch) Write(b []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.Writer.Write(b)
	}
	return len(b), nil
}
