// Command oom writes the programs of README.md that run out of memory: each as a trace, and as the
// memory snapshot that PyTorch would write at its end.
//
//	go run ./examples/oom DIR
//
// The output is the same on every machine.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/strategies"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oom:", err)
		os.Exit(1)
	}
}

// run writes every program into the directory that the arguments name.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want one directory to write to")
	}
	for _, p := range programs {
		if err := p.write(args[0]); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (p *program) write(dir string) error {
	text, err := p.text()
	if err != nil {
		return err
	}
	r, err := p.die(text)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, p.name)
	err = fileio.Write(file+".trace.gz", io.Discard, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	return fileio.Write(file+".pickle.gz", io.Discard, r.WriteSnapshot)
}

// text returns the trace of a program as a file.
func (p *program) text() ([]byte, error) {
	t, err := p.trace()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = trace.Write(&b, t)
	return b.Bytes(), err
}

// die replays the program on its card with PyTorch's default settings until a request is refused.
// The trace is read from the text, so that it has the name and the hash of the file.
func (p *program) die(text []byte) (*export.Run, error) {
	t, err := formats.Read(bytes.NewReader(text), p.name+".trace.gz", formats.Options{})
	if err != nil {
		return nil, err
	}
	setup, err := strategies.All().Lookup("caching", json.RawMessage(nil))
	if err != nil {
		return nil, err
	}
	dev, err := sim.New(sim.Config{Capacity: p.card})
	if err != nil {
		return nil, err
	}
	return export.Replay(t, setup, dev, export.Options{StopAtOOM: true})
}
