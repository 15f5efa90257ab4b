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
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Write creates or replaces the file at path with what fill writes. stdout is where "-"
// goes. On any error the file at path is as it was before.
func Write(path string, stdout io.Writer, fill func(io.Writer) error) (err error) {
	if path == "-" {
		return fillBuffered(stdout, fill)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, withoutPath(err))
		}
	}()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeThrough(path, fill) // a device or a pipe cannot be replaced
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails, harmlessly, once the file has its final name
	if err := fillCompressed(f, path, fill); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
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
	switch {
	case strings.HasSuffix(path, ".gz"):
		z := gzip.NewWriter(w)
		return errors.Join(fillBuffered(z, fill), z.Close())
	case strings.HasSuffix(path, ".zst"):
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
	return err
}
