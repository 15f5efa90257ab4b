package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a [Store] in a folder, which machines may share over NFS or the like. An object is
// written under a temporary name and linked to its own, so it is never seen in part. It is not
// flushed to the disk: after a power failure it may be damaged, and is then computed again.
type Dir string

// OpenDir returns the store in a folder, which it creates if need be.
func OpenDir(path string) (Dir, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return Dir(path), nil
}

// String returns the path.
func (d Dir) String() string { return string(d) }

func (d Dir) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Get implements [Store].
func (d Dir) Get(_ context.Context, name string) ([]byte, error) {
	body, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	return body, err
}

// temporaries is the suffix of files that are being written.
const temporaries = ".tmp"

// Put implements [Store].
func (d Dir) Put(_ context.Context, name string, body []byte) error {
	path := d.path(name)
	f, err := os.CreateTemp(filepath.Dir(path), "*"+temporaries)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			f, err = os.CreateTemp(filepath.Dir(path), "*"+temporaries)
		}
	}
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // also after an error, which is returned
	_, err = f.Write(body)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return ErrTaken
	}
	return err
}

// Names implements [Store].
func (d Dir) Names(ctx context.Context, prefix string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(string(d), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, temporaries) {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(string(d), path)
		if name = filepath.ToSlash(name); err == nil && strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
		return err
	})
	return all, err // WalkDir walks in lexical order of the paths
}

// Remove implements [Store].
func (d Dir) Remove(_ context.Context, name string) error {
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
