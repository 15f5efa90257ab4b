package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/vramyard/vramyard/internal/fileio"
)

// Locations of results in the repository.
const (
	resultFiles    = "docs/results/gpu-*.json"
	snapshotFolder = "testdata/snapshots"
	tableFile      = "device/sim/measured.go"
)

// errStandIn means that a result was not measured on a card.
var errStandIn = errors.New("the driver was the stand-in of the tests: that is no result of a card")

// publish adds the results of runs to the repository at root, and regenerates all files derived
// from results. All files are generated before the first is written.
func publish(root string, dirs []string, log io.Writer) error {
	files := map[string][]byte{}
	all, err := published(root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		r, err := readResult(filepath.Join(dir, "result.json"))
		if err != nil {
			return err
		}
		if r.StandIn || r.Machine.GPU == "" {
			return fmt.Errorf("%s: %w", dir, errStandIn)
		}
		all[r.slug()] = r
		for _, s := range r.Snapshots {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.File)))
			if err != nil {
				return err
			}
			if sumOf(text) != s.SHA256 {
				return fmt.Errorf("%s: is not what was recorded", s.File)
			}
			files[filepath.Join(snapshotFolder, r.slug(), filepath.Base(s.File))] = text
		}
	}
	if err := derive(all, files); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := store(path, files[name]); err != nil {
			return err
		}
		fmt.Fprintln(log, name)
	}
	return nil
}

// store writes a file unchanged: the content is compressed already.
func store(path string, text []byte) error {
	if filepath.Ext(path) == ".zst" {
		return os.WriteFile(path, text, 0o644)
	}
	return fileio.Write(path, nil, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// published reads the results of the repository at root, by name.
func published(root string) (map[string]*Result, error) {
	paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(resultFiles)))
	if err != nil {
		return nil, err
	}
	all := map[string]*Result{}
	for _, path := range paths {
		r, err := readResult(path)
		if err != nil {
			return nil, err
		}
		if want := "gpu-" + r.slug() + ".json"; filepath.Base(path) != want {
			return nil, fmt.Errorf("%s: want the name %s", path, want)
		}
		if r.StandIn {
			return nil, fmt.Errorf("%s: %w", path, errStandIn)
		}
		all[r.slug()] = r
	}
	return all, nil
}

// derive writes the files derived from results: their pages, the cost tables of the simulator, and
// the page of snapshots.
func derive(all map[string]*Result, files map[string][]byte) error {
	var timed []*Result
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		for ending, write := range map[string]func(io.Writer) error{".json": r.write, ".md": r.markdown} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				return err
			}
			files["docs/results/gpu-"+name+ending] = b.Bytes()
		}
		// A table of only some calls would mix measurements with published figures of other cards.
		if p := r.part("timing"); p != nil && p.State == Held {
			timed = append(timed, r)
		}
		if len(r.Snapshots) > 0 {
			var b bytes.Buffer
			r.snapshotPage(&b)
			files[filepath.Join(snapshotFolder, name, "README.md")] = b.Bytes()
		}
	}
	var b bytes.Buffer
	if err := writeTables(&b, timed); err != nil {
		return err
	}
	files[tableFile] = b.Bytes()
	return nil
}

// snapshotPage writes the page about the origin of the snapshots.
func (r *Result) snapshotPage(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "# Memory snapshots of PyTorch, %s\n\n", m.GPU)
	fmt.Fprintf(w, "Recorded on %s by PyTorch %s for CUDA %s, Python %s; commit %s. The programs are those of "+
		"[record.py](../../../benchmarks/gpu/record.py), "+
		"made for this project: weights and inputs are drawn from the seed. They were recorded from before the first "+
		"tensor on the GPU on, with "+
		"`torch.cuda.memory._record_memory_history`. Paths of files in stacks were shortened to what follows the directory "+
		"of packages.\n",
		r.source(), m.Torch, m.TorchCUDA, m.Python, r.Commit)
	r.snapshotText(w)
	fmt.Fprintf(w, "\nHow to make others: [docs/gpu.md](../../../docs/gpu.md#ten-minutes-on-a-card).\n")
}
