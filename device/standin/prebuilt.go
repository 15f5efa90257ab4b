package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// standinsFolder is the folder of the stand-ins in the user's cache, and of prebuilt ones beside
// the program.
const standinsFolder = "standins"

// prebuilt is the content of a file KEY.json in a folder of prebuilt stand-ins, where KEY is the
// key of their recipe.
type prebuilt struct {
	Facts Facts             `json:"facts"` // of the PyTorch that they are for, as far as they depend on it
	Files map[string]string `json:"files"` // the file of each library; equal libraries share one
}

// Prebuild compiles the stand-ins for a program with these imports and adds them to a folder. A
// program that has it as "standins" beside it needs no compiler for this program, nor for one that
// imports less from the same libraries.
func (f *Facts) Prebuild(dir string) error {
	r, names, err := f.recipe()
	if err != nil {
		return err
	}
	key, err := r.Key()
	if err != nil {
		return err
	}
	built, err := r.Build()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	set := prebuilt{
		Facts: Facts{Torch: f.Torch, CUDA: f.CUDA, Requires: f.Requires, Libraries: f.Libraries, Looked: f.Looked},
		Files: map[string]string{},
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return err
		}
		hash := sha256.Sum256(content)
		set.Files[name] = name + "-" + hex.EncodeToString(hash[:8])
		if err := os.WriteFile(filepath.Join(dir, set.Files[name]), content, 0o644); err != nil {
			return err
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, key+".json"), text, 0o644)
}

// prebuilt returns the files of prebuilt libraries in a folder that export all that f needs, in the
// order of their names. Without such it returns nil and the releases of PyTorch that have some.
func (f *Facts) prebuilt(dir string, names []string) (files, releases []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		var set prebuilt
		if err := json.Unmarshal(text, &set); err != nil {
			return nil, nil, fmt.Errorf("%s: want the facts of a PyTorch: %w", path, err)
		}
		releases = append(releases, set.Facts.Torch)
		if !set.Facts.covers(f) {
			continue
		}
		r, _, err := set.Facts.recipe()
		if err != nil {
			return nil, nil, err
		}
		switch key, err := r.Key(); {
		case err != nil:
			return nil, nil, err
		case key+".json" != filepath.Base(path): // built from other sources than those of this program
			continue
		}
		for _, name := range names {
			files = append(files, filepath.Join(dir, set.Files[name]))
		}
		return files, nil, nil
	}
	slices.Sort(releases)
	return nil, releases, nil
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
