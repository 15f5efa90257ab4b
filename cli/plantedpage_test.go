package cli

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props/planted"
)

var plantedPage = flag.String("planted-page", "", "write the page of a check that fails to this file")

// TestThePageOfAPlantedBug checks a strategy with a bug. tools/browser opens the page.
func TestThePageOfAPlantedBug(t *testing.T) {
	if !planted.Enabled {
		t.Skip("needs a build with planted bugs")
	}
	planted.Set("bestfit/misses-left")
	defer planted.Set(planted.None)
	file := cmp.Or(*plantedPage, filepath.Join(t.TempDir(), "r.html"))
	status, _, stderr := command(t, "check", "--strategies", "bestfit", "--tests", "50", "--out", t.TempDir(),
		"--html", file)
	require.Equal(t, exitFailed, status)
	require.Contains(t, stderr, "broke an invariant, first bestfit")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "An invariant is broken")
}
