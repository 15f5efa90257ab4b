package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
	"github.com/vramyard/vramyard/strategies"
)

// TestOrdinaryBuildHasNoBug checks that there is nothing to plant.
func TestOrdinaryBuildHasNoBug(t *testing.T) {
	if planted.Enabled {
		t.Skip("needs a build without planted bugs")
	}
	planted.Set("bfc/lost-remainder")
	require.False(t, planted.Is("bfc/lost-remainder"))
	require.Empty(t, check.PlantedBugs())
	_, err := check.Planted(t.Context(), strategies.All(), bugs.All()[0], check.Options{})
	require.ErrorIs(t, err, check.ErrNotPlantable)
}

// TestOrdinaryProgramHasNoTrace builds the program and looks for the names of bugs in it.
func TestOrdinaryProgramHasNoTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("it links a program, which -short leaves out")
	}
	program := filepath.Join(t.TempDir(), "vramyard")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/vramyard/vramyard/cmd/vramyard")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	var pairs []string
	for _, b := range bugs.All() {
		pairs = append(pairs, string(b.ID), "") // an empty one in its place
	}
	without := strings.NewReplacer(pairs...).Replace(string(text)) // one pass for all
	require.Len(t, without, len(text), "a bug is in the program: strings FILE | grep NAME")
}
