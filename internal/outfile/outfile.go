// Package outfile writes output files whole or not at all.
//
// A file is written under a temporary name beside its target and renamed when it is
// complete, so that a full disk, an error halfway or an interruption never leaves half a
// file under the name that a script will read. "-" is standard output. Names that end in
// .gz or .zst are compressed.
package outfile

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// errName refuses the empty name.
var errName = errors.New("want the name of a file, or - for standard output")

// Write creates or replaces the file at path with what fill writes. stdout is where "-"
// goes. A file that is replaced keeps its permissions, and a symbolic link its place. On
// any error the file at path is as it was before.
func Write(path string, stdout io.Writer, fill func(io.Writer) error) (err error) {
	if path == "-" {
		return fillBuffered(stdout, fill)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, withoutPath(err))
		}
	}()
	if path == "" {
		return errName
	}
	target, mode, err := resolve(path)
	if err != nil {
		return err
	}
	if mode.Type() != 0 {
		return writeThrough(target, fill) // a device or a pipe cannot be replaced
	}
	return replace(target, mode, fill)
}

// resolve returns the file that path leads to, and its mode; that of a file which does
// not exist is zero.
func resolve(path string) (target string, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, 0, nil
	case err != nil:
		return "", 0, err
	case info.IsDir():
		return "", 0, errors.New("is a directory")
	}
	target, err = filepath.EvalSymlinks(path)
	return target, info.Mode(), err
}

// replace writes a file under a temporary name and gives it its own when it is complete.
func replace(target string, mode fs.FileMode, fill func(io.Writer) error) error {
	f, err := create(target)
	if err != nil {
		return err
	}
	defer discard(f.Name()) // does nothing once the file has its final name
	if err := fillCompressed(f, target, fill); err != nil {
		return errors.Join(err, f.Close())
	}
	if mode != 0 {
		err = f.Chmod(mode.Perm())
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

// unfinished are the temporary files that exist now.
var unfinished = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// RemoveUnfinished removes the temporary files of writes that are under way, for a program
// that is about to end by a signal.
func RemoveUnfinished() {
	unfinished.Lock()
	defer unfinished.Unlock()
	for name := range unfinished.names {
		_ = os.Remove(name) // the program ends; there is nobody to tell
	}
}

// create makes a temporary file beside target, with the permissions of a new file.
func create(target string) (*os.File, error) {
	unfinished.Lock()
	defer unfinished.Unlock()
	dir, base := filepath.Split(target)
	for {
		// The name decides nothing but whether it is taken already.
		name := dir + "." + base + "." + strconv.FormatUint(uint64(rand.Uint32()), 36)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			unfinished.names[name] = true
		}
		return f, err
	}
}

// discard removes a temporary file if it still has its temporary name.
func discard(name string) {
	unfinished.Lock()
	defer unfinished.Unlock()
	delete(unfinished.names, name)
	_ = os.Remove(name) // fails, harmlessly, for a file that was renamed
}

// writeThrough writes to something that is no regular file.
func writeThrough(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fillCompressed(f, path, fill), f.Close())
}

// fillCompressed calls fill with a writer that compresses as the name asks.
func fillCompressed(w io.Writer, path string, fill func(io.Writer) error) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		z := gzip.NewWriter(w)
		return errors.Join(fillBuffered(z, fill), z.Close())
	case ".zst":
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		return errors.Join(fillBuffered(z, fill), z.Close())
	default:
		return fillBuffered(w, fill)
	}
}

func fillBuffered(w io.Writer, fill func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := fill(b); err != nil {
		return err
	}
	return b.Flush()
}

// withoutPath strips the temporary name from an error of the file system: the caller
// names the path that the user knows.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}
