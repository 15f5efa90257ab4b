package fileio_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/fileio"
)

func TestCheckRefusesWhatWriteWould(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	for _, good := range []string{"-", filepath.Join(dir, "new.json"), file, os.DevNull} {
		require.NoError(t, fileio.CheckOutput(good))
	}
	for bad, want := range map[string]string{
		"":                              "want the name of a file, or - for standard output",
		dir:                             "write " + dir + ": is a directory",
		filepath.Join(dir, "none", "x"): "no such file or directory",
		filepath.Join(file, "x"):        "not a directory",
	} {
		err := fileio.CheckOutput(bad)
		require.ErrorContains(t, err, want)
		require.EqualError(t, fileio.Write(bad, nil, hello), err.Error())
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left behind")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
}

func TestCheckRefusesAFolderThatIsReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locked")
	require.NoError(t, os.Mkdir(dir, 0o500))
	if os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600) == nil {
		t.Skip("needs a user other than root, who may write everywhere")
	}
	require.ErrorContains(t, fileio.CheckOutput(filepath.Join(dir, "x.json")), "permission denied")
}
