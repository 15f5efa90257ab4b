package fileio

// [Write] writes output files completely or not at all.
//
// A file is written under a temporary name beside its target and renamed when it is complete, so a
// full disk, an error or an interruption never leaves a partial file under the final name. The
// temporary file is locked while it is written. A killed program leaves its file unlocked, and the
// next write to the same target removes it. "-" is standard output. Devices, pipes and open
// descriptors such as /dev/stdout are written directly. Names that end in .gz or .zst are
// compressed.

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// errName refuses the empty name.
var errName = errors.New("want the name of a file, or - for standard output")

// errDir refuses a folder.
var errDir = errors.New("is a directory")

// Write creates or replaces the file at path with the output of fill. stdout is the target for "-".
// A replaced file keeps its permissions and a symbolic link stays, even if its target does not
// exist. After an error the file at path is unchanged.
func Write(path string, stdout io.Writer, fill func(io.Writer) error) (err error) {
	if path == "-" {
		return fillBuffered(stdout, fill)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, withoutPath(err))
		}
	}()
	to, err := resolve(path)
	switch {
	case err != nil:
		return err
	case to.open != nil:
		return fillCompressed(to.open, path, fill)
	case to.inPlace:
		return writeThrough(to.path, fill)
	}
	return replace(to, fill)
}

// place is the resolved path of an output.
type place struct {
	path    string      // with symbolic links followed
	mode    fs.FileMode // permissions of the existing file; 0 if the file is new
	inPlace bool        // a device, a pipe or an open file: written directly, since it cannot be replaced
	open    *os.File    // standard output or standard error, if it is one of those
}

// mostLinks bounds the symbolic links that are followed.
const mostLinks = 40

// resolve follows a path.
func resolve(path string) (place, error) {
	if path == "" {
		return place{}, errName
	}
	for range mostLinks {
		if n, ok := descriptor(path); ok {
			return opened(path, n)
		}
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return place{path: path}, nil
		case err != nil:
			return place{}, err
		case info.IsDir():
			return place{}, errDir
		case info.Mode().Type() != fs.ModeSymlink:
			return place{path: path, mode: info.Mode(), inPlace: !info.Mode().IsRegular()}, nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return place{}, err
		}
		if !filepath.IsAbs(link) { // the preceding part may be a link itself, so ".." must not be cleaned away
			link = filepath.Dir(path) + string(filepath.Separator) + link
		}
		path = link
	}
	return place{}, errors.New("too many symbolic links")
}

// descriptor returns the number of this process's open file that a path such as /dev/fd/3 names.
func descriptor(path string) (n int, ok bool) {
	path = filepath.Clean(path)
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/"} {
		if digits, found := strings.CutPrefix(path, dir); found {
			n, err := strconv.Atoi(digits)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// opened returns the place of an open file of this process.
func opened(path string, n int) (place, error) {
	switch n {
	case 0:
		return place{}, errors.New("is standard input")
	case 1:
		return place{open: os.Stdout}, nil
	case 2:
		return place{open: os.Stderr}, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return place{}, err
	case info.IsDir():
		return place{}, errDir
	}
	return place{path: path, mode: info.Mode(), inPlace: true}, nil
}

// replace writes a temporary file and renames it to its target when it is complete.
func replace(to place, fill func(io.Writer) error) error {
	f, err := create(to)
	if err != nil {
		return err
	}
	renamed := false
	defer func() { // also if fill panics
		if !renamed {
			discard(f)
		}
	}()
	if err := fillCompressed(f, to.path, fill); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	unfinished.Lock()
	defer unfinished.Unlock()
	renamed, err = finish(f, to.path)
	if renamed { // from now on another write may use the temporary name
		delete(unfinished.names, f.Name())
	}
	return err
}

// unfinished are the temporary files that exist now.
var unfinished = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// RemoveUnfinished removes the temporary files of writes in progress. A program calls it before a
// signal ends it.
func RemoveUnfinished() {
	unfinished.Lock()
	defer unfinished.Unlock()
	for name := range unfinished.names {
		_ = os.Remove(name) // the program is exiting; the error cannot be reported
	}
}

// Temporary files of one target are numbered, so that abandoned ones are found without listing the
// folder.
const (
	mostNumbers   = 1000 // concurrent writes to one target
	numbersToScan = 8    // numbers that are checked for abandoned files
)

// create creates a temporary file beside a target, with the target's permissions or those of a new
// file. It removes the abandoned files of killed programs.
func create(to place) (made *os.File, err error) {
	unfinished.Lock()
	defer unfinished.Unlock()
	perm := fs.FileMode(0o666)
	if to.mode != 0 {
		perm = to.mode.Perm()
	}
	for n := range mostNumbers {
		name := temporary(to.path, n)
		removeAbandoned(name)
		if made == nil {
			made, err = createLocked(name, perm)
		}
		if err != nil || made != nil && n+1 >= numbersToScan {
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case made == nil:
		return nil, errors.New("too many writes at once")
	}
	unfinished.names[made.Name()] = true
	if to.mode != 0 {
		err = made.Chmod(perm) // restores permissions that the umask removed
	}
	if err != nil {
		delete(unfinished.names, made.Name())
		abandon(made)
		return nil, err
	}
	return made, nil
}

// temporary returns the name of the n-th temporary file of a target.
func temporary(target string, n int) string {
	dir, base := filepath.Split(target)
	const most = 200 // of the 255 bytes of a name
	if len(base) > most {
		base = strings.ToValidUTF8(base[:most], "")
	}
	return dir + "." + base + ".vramyard-" + strconv.Itoa(n)
}

// createLocked creates and locks a file. It returns nil if the name exists.
func createLocked(name string, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if lock(f) && stillNamed(f, name) { // before the lock, another write may have removed it as abandoned
		return f, nil
	}
	return nil, f.Close()
}

func stillNamed(f *os.File, name string) bool {
	mine, err := f.Stat()
	there, errThere := os.Lstat(name)
	return err == nil && errThere == nil && os.SameFile(mine, there)
}

// discard closes and removes a temporary file.
func discard(f *os.File) {
	unfinished.Lock()
	defer unfinished.Unlock()
	delete(unfinished.names, f.Name())
	abandon(f)
}

// writeThrough writes to a device, a pipe or an open file. It appends to an open file.
func writeThrough(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(fillCompressed(f, path, fill), f.Close())
}

// fillCompressed calls fill with a writer that compresses according to the name's ending.
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

// withoutPath strips the path from an error of the file system, since it may be the temporary one.
// The caller adds the path that the user gave.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}
