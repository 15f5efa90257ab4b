package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vramyard/vramyard/internal/fileio"
)

// figures are all raw files.
type figures struct {
	comparisons []comparison
	times       []timesFile // by comparison
	locked      lockedFile
	latency     latencyFile
	lines       linesFile
	peers       peersFile
	files       filesFile
}

// peersFile is what benchmarks/peers/race writes, as far as it is shown here.
type peersFile struct {
	Commit string    `json:"commit"`
	Rounds int       `json:"rounds"`
	Runs   []peerRun `json:"runs"`
}

// peerRun is one allocator of the race on one workload.
type peerRun struct {
	Allocator string  `json:"allocator"`
	About     string  `json:"about"`
	ByAddress bool    `json:"by_address"`
	Workload  string  `json:"workload"`
	Live      int     `json:"live"`
	Min       float64 `json:"ns_per_pair_min"`
	Address   float64 `json:"address_ratio"`
	Heap      float64 `json:"heap_bytes_per_block"`
}

// name returns the allocator, with a * if it frees by a handle or reference.
func (r *peerRun) name() string {
	if r.ByAddress {
		return r.Allocator
	}
	return r.Allocator + " *"
}

func loadAll(o options) (f figures, err error) {
	f.comparisons = comparisons()
	for _, c := range f.comparisons {
		var t timesFile
		if err := load(o, c.file(), &t); err != nil {
			return f, err
		}
		f.times = append(f.times, t)
	}
	return f, errors.Join(
		load(o, "locked.json", &f.locked), load(o, "latency.json", &f.latency), load(o, "lines.json", &f.lines),
		loadLoosely(o, "peers.json", &f.peers), load(o, "files.json", &f.files))
}

// render writes the plots, and the tables into the page between the marks of each.
func render(o options) error {
	f, err := loadAll(o)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: run the steps before", err)
	}
	if err != nil {
		return err
	}
	page := filepath.Join(o.docs, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	files, err := f.drawn()
	if err != nil {
		return err
	}
	if files[page], err = f.filled(string(text)); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := os.MkdirAll(filepath.Join(o.docs, "performance"), 0o755); err != nil {
		return err
	}
	for _, p := range plots() {
		files[filepath.Join(o.docs, "performance", p.file)] = files[p.file]
		delete(files, p.file)
	}
	return writeAll(files)
}

func writeAll(files map[string]string) error {
	for name, text := range files {
		err := fileio.Write(name, nil, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// filled returns the page with every table in its place.
func (f *figures) filled(page string) (string, error) {
	for _, t := range tables() {
		begin, end := "<!-- begin "+t.name+" -->\n", "<!-- end "+t.name+" -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return "", fmt.Errorf("want a line %q and one %q behind it", strings.TrimSpace(begin), end)
		}
		page = before + begin + "\n" + t.write(f) + "\n" + end + after
	}
	return page, nil
}
