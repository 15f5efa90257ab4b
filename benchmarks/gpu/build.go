package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/internal/fileio"
)

// bundleSchema names the form of a [manifest].
const bundleSchema = "vramyard-gpu-bundle/1"

// Files of a bundle that are named in several places. Scripts have the same folders as in the
// repository, because they find each other by relative paths.
const (
	library      = "python/vramyard/bin/libvramyard.so"
	trainScript  = "examples/pytorch/train.py"
	recordScript = "benchmarks/gpu/record.py"
	manifestName = "manifest.json"
)

// mostBundle is the maximum size of a bundle in bytes.
const mostBundle = 60 << 20

// manifest is the table of contents of a bundle.
type manifest struct {
	Schema string   `json:"schema"`
	Commit string   `json:"commit"` // of the repository, with "-dirty" if files of it differ
	Go     string   `json:"go"`     // version of the toolchain, system and architecture
	Wants  []string `json:"wants"`  // newest versions of symbols that the library requires of the system
	// Missing maps each file that could not be built to the reason.
	Missing map[string]string `json:"missing,omitempty"`
	Files   map[string]string `json:"files"` // SHA-256 by path
}

// built lists the files that the toolchain builds.
var built = []struct {
	path string
	args []string
	cgo  bool
}{
	{"gpu", []string{"build", "./benchmarks/gpu"}, false},
	{"vramyard", []string{"build", "./cmd/vramyard"}, false},
	{"cuda.test", []string{"test", "-c", "./device/cuda"}, false},
	{library, []string{"build", "-buildmode=c-shared", "./cmd/libvramyard"}, true},
}

// copied lists the files that are copied from the repository.
var copied = []string{"python/vramyard/__init__.py", "python/vramyard/torch.py", trainScript, recordScript}

// build makes a bundle of the repository at root, as a whole or not at all.
func build(ctx context.Context, root, dir string, log io.Writer) (err error) {
	if runtime.GOOS != "linux" {
		return errors.New("build: bundles are for Linux, and made on it")
	}
	if err := replaceable(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".bundle")
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.RemoveAll(fresh); err == nil {
			err = gone
		}
	}()
	m := manifest{
		Schema: bundleSchema, Commit: commit(ctx, root), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Missing: map[string]string{}, Files: map[string]string{},
	}
	if err := m.fill(ctx, root, fresh, log); err != nil {
		return err
	}
	size, err := m.sum(fresh)
	if err != nil {
		return err
	}
	if size > mostBundle {
		return fmt.Errorf("build: %d bytes are more than the %d that can be carried", size, mostBundle)
	}
	if err := m.save(fresh); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	fmt.Fprintf(log, "%s: %d bytes in %d files, commit %s\n", dir, size, len(m.Files), m.Commit)
	for _, name := range slices.Sorted(maps.Keys(m.Missing)) {
		fmt.Fprintf(log, "MISSING %s: %s\n", name, m.Missing[name])
	}
	return nil
}

// replaceable returns an error if the directory exists and is not a bundle.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, manifestName)); err != nil {
		return fmt.Errorf("build: %s exists and is not a bundle: want another directory", dir)
	}
	return nil
}

// commit returns the commit of the repository, or "" outside of git.
func commit(ctx context.Context, root string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	id, err := git("rev-parse", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--untracked-files=no"); err != nil || changed != "" {
		id += "-dirty"
	}
	return id
}

// fill builds and copies the files. Files that need a missing compiler are listed as missing.
func (m *manifest) fill(ctx context.Context, root, dir string, log io.Writer) error {
	for _, b := range built {
		fmt.Fprintln(log, "building", b.path)
		path, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(b.path)))
		if err != nil {
			return err
		}
		if b.cgo {
			if lacks := lacksCompilers(); lacks != "" {
				m.Missing[b.path] = lacks
				continue
			}
		}
		args := append(slices.Clone(b.args[:len(b.args)-1]), "-ldflags=-s -w", "-o", path, b.args[len(b.args)-1])
		c := exec.CommandContext(ctx, "go", args...)
		c.Dir = root
		c.Env = append(os.Environ(), "CGO_ENABLED="+strconv.Itoa(map[bool]int{true: 1}[b.cgo]))
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		if err := c.Run(); err != nil {
			return fmt.Errorf("build: go %s: %w: %s", strings.Join(b.args, " "), err, oneLine(strings.TrimSpace(said.String())))
		}
		if b.cgo {
			if m.Wants, err = wants(path); err != nil {
				return err
			}
		}
	}
	for _, name := range copied {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	// This header is unused here.
	return os.RemoveAll(filepath.Join(dir, filepath.FromSlash(strings.TrimSuffix(library, ".so")+".h")))
}

// lacksCompilers returns the name of a compiler that cgo needs and does not find, or "".
func lacksCompilers() string {
	for _, c := range []struct{ variable, name, language string }{{"CC", "gcc", "C"}, {"CXX", "g++", "C++"}} {
		if _, err := exec.LookPath(cmp.Or(os.Getenv(c.variable), c.name)); err != nil {
			return fmt.Sprintf("no compiler of %s was found when the bundle was made (%v)", c.language, err)
		}
	}
	return ""
}

// wants returns the newest required version of each kind of external symbols of a library, such
// as GLIBC_2.34.
func wants(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return nil, err
	}
	newest := map[string][]int{}
	for _, s := range symbols {
		kind, version, ok := strings.Cut(s.Version, "_")
		var numbers []int
		for part := range strings.SplitSeq(version, ".") {
			n, err := strconv.Atoi(part)
			ok = ok && err == nil
			numbers = append(numbers, n)
		}
		if ok && slices.Compare(numbers, newest[kind]) > 0 {
			newest[kind] = numbers
		}
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(newest)) {
		all = append(all, kind+"_"+strings.ReplaceAll(strings.Trim(fmt.Sprint(newest[kind]), "[]"), " ", "."))
	}
	return all, nil
}

// sum stores the checksums of all files and returns their total size.
func (m *manifest) sum(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		size += int64(len(text))
		m.Files[filepath.ToSlash(name)] = sumOf(text)
		return err
	})
	return size, err
}

// sumOf returns the SHA-256 of a text.
func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (m *manifest) save(dir string) error {
	return fileio.Write(filepath.Join(dir, manifestName), nil, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(m)
	})
}

// readManifest reads the manifest of a bundle and verifies the checksums of its files.
func readManifest(dir string) (*manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, fmt.Errorf("%s is no bundle: make one with \"gpu build DIR\" on a machine with Go: %w", dir, err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	if m.Schema != bundleSchema {
		return nil, fmt.Errorf("%s: is no %s", filepath.Join(dir, manifestName), bundleSchema)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if sumOf(text) != m.Files[name] {
			return nil, fmt.Errorf("%s: is not as it was made", filepath.Join(dir, name))
		}
	}
	return &m, nil
}
