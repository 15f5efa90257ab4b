// Command incidents writes the traces of README.md: public reports of programs that ran out of
// memory, each as the requests that it describes.
//
//	go run ./examples/incidents DIR
//
// The output is the same on every machine.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/fileio"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "incidents:", err)
		os.Exit(1)
	}
}

// run writes every trace into the directory that the arguments name.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want one directory to write to")
	}
	for i := range incidents {
		n := &incidents[i]
		t, err := n.trace()
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		path := filepath.Join(args[0], n.name+".trace.gz")
		err = fileio.Write(path, io.Discard, func(w io.Writer) error { return trace.Write(w, t) })
		if err != nil {
			return err
		}
	}
	return nil
}
