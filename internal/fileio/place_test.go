//go:build unix

package fileio_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/fileio"
)

// childPath is the variable that makes TestChild write, in a process of its own.
const childPath = "OUTFILE_CHILD_PATH"

// TestChild writes where its parent says. With a path that ends in /killed it is killed halfway.
func TestChild(t *testing.T) {
	path := os.Getenv(childPath)
	if path == "" {
		t.Skip("needs the environment that other tests start it with")
	}
	require.NoError(t, fileio.CheckOutput(path))
	require.NoError(t, fileio.Write(path, nil, func(w io.Writer) error {
		if filepath.Base(path) == "killed" {
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
			time.Sleep(time.Minute)
		}
		return hello(w)
	}))
	os.Exit(0) // without the words of the test
}

// child returns the command that writes to path.
func child(path string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestChild$")
	c.Env = append(os.Environ(), childPath+"="+path)
	return c
}

// TestOpenFilesAreWrittenTo has standard output, standard error and another descriptor lead to a
// file that is appended to, and to a pipe: neither is replaced.
func TestOpenFilesAreWrittenTo(t *testing.T) {
	for _, path := range []string{"/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/3", "/proc/self/fd/3"} {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			continue // this system has other paths
		}
		name := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(name, []byte("before\n"), 0o600))
		log, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		c := child(path)
		c.Stdout, c.Stderr, c.ExtraFiles = log, log, []*os.File{log}
		require.NoError(t, c.Run(), path)
		_, err = log.WriteString("after\n")
		require.NoError(t, err)
		require.NoError(t, log.Close())
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "before\nhello\nafter\n", string(text), path)

		r, w, err := os.Pipe()
		require.NoError(t, err)
		c = child(path)
		c.Stdout, c.Stderr, c.ExtraFiles = w, w, []*os.File{w}
		require.NoError(t, c.Run(), path)
		require.NoError(t, w.Close())
		text, err = io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(text), path)
	}
	require.EqualError(t, fileio.Write("/dev/stdin", nil, hello), "write /dev/stdin: is standard input")
}

func TestNamedPipesAreWrittenTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	wrote := make(chan error, 1)
	go func() { wrote <- fileio.Write(path, nil, hello) }()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	require.Equal(t, "hello\n", string(text))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeNamedPipe)
}

// TestLinksKeepTheirPlace writes through links to a file that is not there yet.
func TestLinksKeepTheirPlace(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "results"), 0o700))
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	require.NoError(t, os.Symlink("second", first))
	require.NoError(t, os.Symlink(filepath.Join("results", "new"), second))
	require.NoError(t, fileio.Write(first, nil, hello))
	for _, link := range []string{first, second} {
		info, err := os.Lstat(link)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results", "new"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))

	loop := filepath.Join(dir, "loop")
	require.NoError(t, os.Symlink("loop", loop))
	require.EqualError(t, fileio.Write(loop, nil, hello), "write "+loop+": too many symbolic links")
	nowhere := filepath.Join(dir, "nowhere")
	require.NoError(t, os.Symlink(filepath.Join("none", "new"), nowhere))
	require.EqualError(t, fileio.Write(nowhere, nil, hello), "write "+nowhere+": no such file or directory")
}

// TestTemporaryFilesHaveTheModeOfTheirTarget looks at the folder while a file is written.
func TestTemporaryFilesHaveTheModeOfTheirTarget(t *testing.T) {
	umask := syscall.Umask(0o027)
	defer syscall.Umask(umask)
	for _, mode := range []os.FileMode{0, 0o600, 0o666, 0o444} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		want := os.FileMode(0o640)
		if mode != 0 {
			require.NoError(t, os.WriteFile(path, nil, mode))
			require.NoError(t, os.Chmod(path, mode))
			want = mode
		}
		require.NoError(t, fileio.Write(path, nil, func(w io.Writer) error {
			for _, name := range entries(t, dir) {
				info, err := os.Lstat(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, want, info.Mode(), name)
			}
			return hello(w)
		}))
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode())
	}
}

// entries returns the names of what is in a folder.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestLeftoversAreRemoved kills a program that writes: the next write to the same target removes
// its temporary file, and leaves alone that of a program that still writes, and files of others.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "killed")
	require.Error(t, child(path).Run())
	require.Len(t, entries(t, dir), 1, "the temporary file is left over")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".killed.bak"), nil, 0o600))
	require.NoError(t, fileio.Write(path, nil, func(io.Writer) error {
		require.Len(t, entries(t, dir), 2, "one is the new file")
		require.NoError(t, fileio.Write(path, nil, hello), "at the same time")
		require.Len(t, entries(t, dir), 3)
		return nil
	}))
	require.Equal(t, []string{".killed.bak", "killed"}, entries(t, dir))
	long := filepath.Join(dir, strings.Repeat("é", 120))
	require.NoError(t, fileio.Write(long, nil, hello))
}

// TestWritesToOneTargetAtOnce has many writes, some of which fail, to the same file at once: none
// disturbs another.
func TestWritesToOneTargetAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	wrong := errors.New("wrong")
	errs := make(chan error)
	const writers, each = 8, 100
	for i := range writers {
		go func() {
			for n := range each {
				fails := (i+n)%3 == 0
				err := fileio.Write(path, nil, func(w io.Writer) error {
					if fails {
						return wrong
					}
					return hello(w)
				})
				if fails && errors.Is(err, wrong) {
					err = nil
				}
				errs <- err
			}
		}()
	}
	for range writers * each {
		require.NoError(t, <-errs)
	}
	require.Equal(t, []string{"out"}, entries(t, dir))
}
