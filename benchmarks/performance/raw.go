package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/internal/fileio"
)

// schema names the form of the raw files.
const schema = "vramyard-performance/1"

// header is the origin of the figures of a raw file.
type header struct {
	Schema  string        `json:"schema"`
	Commit  string        `json:"commit"` // of this repository; "-dirty" behind it if files differed
	Machine bench.Machine `json:"machine"`
	Caches  []string      `json:"caches"` // of the first CPU: level, kind, size; empty if unknown
}

func newHeader() (header, error) {
	commit, err := commitID()
	return header{schema, commit, bench.ThisMachine(), caches()}, err
}

// commitID returns the commit that is checked out. Raw files, docs and what git does not know do
// not make it dirty: they are what the command writes, or not of the program.
func commitID() (string, error) {
	id, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	dirty := exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/*.go", ":/go.mod")
	var status *exec.ExitError
	switch err := dirty.Run(); {
	case errors.As(err, &status) && status.ExitCode() == 1:
		return strings.TrimSpace(string(id)) + "-dirty", nil
	case err != nil:
		return "", fmt.Errorf("git diff: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// caches returns the caches of the first CPU on Linux, such as "L2 Unified 2048K".
func caches() (all []string) {
	const root = "/sys/devices/system/cpu/cpu0/cache"
	for i := 0; ; i++ {
		var words []string
		for _, part := range []string{"level", "type", "size"} {
			text, err := os.ReadFile(filepath.Join(root, fmt.Sprintf("index%d", i), part))
			if err != nil {
				return all
			}
			words = append(words, strings.TrimSpace(string(text)))
		}
		all = append(all, "L"+strings.Join(words, " "))
	}
}

func store(o options, name string, v any) error {
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	file := filepath.Join(o.results, name)
	fmt.Fprintln(o.log, "writing", file)
	return fileio.Write(file, nil, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(v)
	})
}

// load reads a raw file. Fields that the type lacks are errors, so that a file of an older form
// is not half understood.
func load(o options, name string, v rawFile) error { return read(o, name, v, true) }

// loadLoosely reads a raw file that another program wrote, of which we use a part.
func loadLoosely(o options, name string, v rawFile) error { return read(o, name, v, false) }

// rawFile is the content of a raw file.
type rawFile interface {
	// sound reports whether the file has the minimum for a table or plot. JSON without any known field
	// decodes without an error.
	sound() bool
}

// lockedFile is the raw file of the step locked, whose only report has runs of several goroutines.
type lockedFile struct{ timesFile }

func (f *lockedFile) sound() bool {
	return f.Schema == schema && len(f.Reports) > 0 && f.Reports[0] != nil && len(f.Reports[0].Threads) > 0
}

// errUnsound is the error for a raw file that is not sound.
var errUnsound = errors.New("figures are missing, or of another form: take them again")

func (f *timesFile) sound() bool {
	empty := func(r *bench.Report) bool { return r == nil || len(r.Runs) == 0 || len(r.Loops) == 0 || r.Rounds < 1 }
	return f.Schema == schema && len(f.Reports) > 0 && !slices.ContainsFunc(f.Reports, empty)
}

func (f *latencyFile) sound() bool {
	empty := func(l loadTimes) bool { return l.Bytes <= 0 }
	return f.Schema == schema && len(f.Loads) > 0 && !slices.ContainsFunc(f.Loads, empty)
}

func (f *linesFile) sound() bool { return f.Schema == schema && len(f.Runs) > 0 }

func (f *peersFile) sound() bool {
	alone := func(runs []peerRun) bool { return fastest(runs, foreign) == nil || fastest(runs, oursByAddress) == nil }
	return f.Commit != "" && len(f.raced()) > 0 && !slices.ContainsFunc(f.raced(), alone)
}

// read reads a raw file, which may have unknown fields or not.
func read(o options, name string, v rawFile, strict bool) error {
	f, err := os.Open(filepath.Join(o.results, name))
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if !v.sound() {
		return fmt.Errorf("%s: %w", f.Name(), errUnsound)
	}
	return nil
}
