package torchenv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/torchenv"
)

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		version, release string
		older            bool
	}{
		{"1.13.0a0", "2.1", true},
		{"2.9.1+cu128", "2.10", true},
		{"2.10.0", "2.10", false},
		{"2.10", "2.11", true},
		{"2.11.0.dev20260101", "2.10", false},
		{"", "2.1", true},
		{"main", "2.1", true},
		{"2.1", "", false},
	} {
		require.Equal(t, c.older, torchenv.Older(c.version, c.release), "%q %q", c.version, c.release)
	}
}

// TestExportNamesTheVariablesOfEachRelease exports settings that every release has, and settings
// that are newer than the new name of the variable.
func TestExportNamesTheVariablesOfEachRelease(t *testing.T) {
	e := torchenv.Export("a:1", "2.1")
	require.Equal(t, []string{"PYTORCH_ALLOC_CONF=a:1"}, e.Environment)
	require.Equal(t, []string{"PYTORCH_CUDA_ALLOC_CONF=a:1"}, e.Before)
	require.Equal(t, "2.10", e.Since)
	require.Equal(t, "2.1", e.From)

	e = torchenv.Export("a:1", "2.11")
	require.Empty(t, e.Before)
	require.Equal(t, "2.11", e.Since)
	require.Empty(t, torchenv.Export("", "").Environment)
}
