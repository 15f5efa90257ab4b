package trace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

func TestLinesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	require.NoError(t, os.WriteFile(path, []byte("\xef\xbb\xbfone\r\n\ntwo"), 0o600))
	l, err := trace.OpenLines(path, nil)
	require.NoError(t, err)
	defer l.Close()
	for i, want := range []string{"one", "", "two"} {
		line, err := l.Next()
		require.NoError(t, err)
		require.Equal(t, want, string(line))
		require.Equal(t, i+1, l.Line())
	}
	line, err := l.Next()
	require.NoError(t, err)
	require.Nil(t, line)
	require.Len(t, l.Hash(), 64)
	require.EqualError(t, l.ErrorAt(2, errors.New("empty")), path+":2: empty")
}

func TestLinesThatCannotBeRead(t *testing.T) {
	_, err := trace.OpenLines(filepath.Join(t.TempDir(), "missing"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "x.gz")
	require.NoError(t, os.WriteFile(path, []byte("\x1f\x8b"), 0o600))
	_, err = trace.OpenLines(path, nil)
	require.EqualError(t, err, path+": gzip data is truncated")
	l, err := trace.NewLines(strings.NewReader("a\x00"), "stdin", nil)
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Next()
	require.ErrorContains(t, err, "stdin:1: NUL byte")
}
