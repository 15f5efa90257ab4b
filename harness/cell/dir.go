package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dir is a [Store] in a folder, which machines may share over NFS or the like. An object is
// written under a temporary name and linked to its own, so it is never seen in part. It is not
// flushed to the disk: after a power failure it may be damaged, and is then computed again.
type Dir string

// OpenDir returns the store in a folder, which it creates if need be. It checks that objects can
// be written.
func OpenDir(path string) (Dir, error) {
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		err = Dir(path).probe()
	}
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return Dir(path), nil
}

// ExistingDir returns the store in a folder, which must exist, to be read.
func ExistingDir(path string) (Dir, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a directory")}
	}
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return Dir(path), nil
}

// probe writes a file and links to it.
func (d Dir) probe() error {
	f, err := os.CreateTemp(string(d), "*"+temporaries)
	if err != nil {
		return err
	}
	linked := strings.TrimSuffix(f.Name(), temporaries) + ".link" + temporaries
	defer os.Remove(f.Name())
	defer os.Remove(linked)
	if err := errors.Join(f.Close(), os.Link(f.Name(), linked)); err != nil {
		return fmt.Errorf("want a file system with hard links: %w", err)
	}
	return nil
}

// String returns the path.
func (d Dir) String() string { return string(d) }

func (d Dir) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Get implements [Store].
func (d Dir) Get(ctx context.Context, name string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	body, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	return body, err
}

// temporaries is the suffix of files that are being written.
const temporaries = ".tmp"

// Put implements [Store].
func (d Dir) Put(ctx context.Context, name string, body []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
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
	top := d.path(prefix[:strings.LastIndexByte(prefix, '/')+1]) // the folder that has all of them
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if path == top && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, temporaries) {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(string(d), path)
		if name = filepath.ToSlash(name); err == nil && strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
		return err
	})
	slices.Sort(all) // WalkDir sorts each folder, so "a/b" comes before "a.b"
	return all, err
}

// Remove implements [Store].
func (d Dir) Remove(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
