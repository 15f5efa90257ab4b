//go:build unix

package formats_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/formats"
)

// TestSourceIsReadFromANamedPipe opens a pipe into which somebody writes once and goes: it may be
// opened for reading only once, or what was written is lost and the second opening waits for ever.
func TestSourceIsReadFromANamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(path, []byte("a 0 5\nf 0\n"), 0) }()
	s, err := formats.OpenSource(path, formats.Options{})
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	require.Equal(t, 2, s.Head().Events)
}
