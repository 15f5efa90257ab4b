package standin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// standinsFolder is the folder of the stand-ins in the user's cache, and of prebuilt ones beside
// the program.
const standinsFolder = "standins"

// factsFile is the file in a folder of prebuilt stand-ins that describes the PyTorch they are for.
const factsFile = "facts.json"

// Prebuild compiles the stand-ins for a program with these imports and copies them to a folder
// below dir. A program that has dir as "standins" beside it needs no compiler for this program, nor
// for one that imports less from the same libraries.
func (f *Facts) Prebuild(dir string) error {
	r, files, err := f.recipe()
	if err != nil {
		return err
	}
	name, err := r.key()
	if err != nil {
		return err
	}
	built, err := r.Build()
	if err != nil {
		return err
	}
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(built, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, file), content, 0o644); err != nil {
			return err
		}
	}
	text, err := json.Marshal(Facts{
		Torch: f.Torch, CUDA: f.CUDA, Requires: f.Requires, Libraries: f.Libraries, Looked: f.Looked,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, factsFile), text, 0o644)
}

// prebuilt returns a folder below dir whose stand-ins export all that f needs, "" for none, and the
// releases of PyTorch that have one.
func (f *Facts) prebuilt(dir string) (fitting string, releases []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", factsFile))
	if err != nil {
		return "", nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		var known Facts
		if err := json.Unmarshal(text, &known); err != nil {
			return "", nil, fmt.Errorf("%s: want the facts of a PyTorch: %w", path, err)
		}
		releases = append(releases, known.Torch)
		if !known.covers(f) {
			continue
		}
		r, _, err := known.recipe()
		if err != nil {
			return "", nil, err
		}
		switch name, err := r.key(); {
		case err != nil:
			return "", nil, err
		case name == filepath.Base(filepath.Dir(path)): // otherwise built from other sources than this program's
			return filepath.Dir(path), nil, nil
		}
	}
	slices.Sort(releases)
	return "", releases, nil
}

// covers reports whether stand-ins for f can replace those for another program.
func (f *Facts) covers(other *Facts) bool {
	have := f.libraries()
	return slices.Equal(f.defines(), other.defines()) && !slices.ContainsFunc(other.libraries(), func(l *library) bool {
		return !slices.ContainsFunc(have, func(h *library) bool { return h.covers(l) })
	})
}

// covers reports whether l exports all that other does.
func (l *library) covers(other *library) bool {
	return l.soname == other.soname && l.node == other.node && !slices.ContainsFunc(other.names, func(name string) bool {
		_, ok := slices.BinarySearch(l.names, name)
		return !ok
	})
}
