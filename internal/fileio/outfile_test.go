package fileio_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/fileio"
)

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello\n")
	return err
}

func TestWriteReplacesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, os.WriteFile(path, []byte("before, and longer"), 0o600))
	require.NoError(t, fileio.Write(path, nil, hello))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(got))
}

func TestErrorKeepsTheOldFileAndNoTemporary(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.txt")
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	cause := errors.New("no more figures")
	err := fileio.Write(path, nil, func(w io.Writer) error {
		return errors.Join(hello(w), cause)
	})
	require.ErrorIs(t, err, cause)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "before", string(got))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestErrorNamesTheFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "out.txt")
	err := fileio.Write(path, nil, hello)
	require.EqualError(t, err, "write "+path+": no such file or directory")
}

func TestFullDiskIsAnError(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full to stand in for a full disk")
	}
	require.EqualError(t, fileio.Write("/dev/full", nil, hello), "write /dev/full: no space left on device")
}

func TestDashIsStandardOutput(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, fileio.Write("-", &out, hello))
	require.Equal(t, "hello\n", out.String())
}

func TestEndingsCompress(t *testing.T) {
	for ending, open := range map[string]func(io.Reader) (io.Reader, error){
		".gz": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		".zst": func(r io.Reader) (io.Reader, error) {
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		},
	} {
		path := filepath.Join(t.TempDir(), "out"+ending)
		require.NoError(t, fileio.Write(path, nil, hello))
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		r, err := open(bytes.NewReader(raw))
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(got))
	}
}

func TestPermissionsAndLinksAreKept(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, fileio.Write(link, nil, hello))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, int64(6), info.Size())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

func TestNamesThatAreNoFile(t *testing.T) {
	require.EqualError(t, fileio.Write("", nil, hello), "write : want the name of a file, or - for standard output")
	dir := t.TempDir()
	require.EqualError(t, fileio.Write(dir, nil, hello), "write "+dir+": is a directory")
}

func TestUnfinishedFilesCanBeRemoved(t *testing.T) {
	dir := t.TempDir()
	err := fileio.Write(filepath.Join(dir, "out"), nil, func(io.Writer) error {
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1)
		fileio.RemoveUnfinished()
		files, err = os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)
		return nil
	})
	require.Error(t, err, "the file is gone, so it cannot get its name")
}
