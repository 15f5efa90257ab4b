package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
)

// TestEveryBugIsPlanted looks for an edit or a wrapper of each bug.
func TestEveryBugIsPlanted(t *testing.T) {
	edited, err := bugs.Edited()
	require.NoError(t, err)
	listed, wrappers := map[planted.ID]bool{}, plantedWrappers()
	for _, b := range bugs.All() {
		listed[b.ID] = true
		require.NotEqual(t, edited[b.ID], wrappers[b.ID] != nil, "%s: want an edit or a wrapper", b.ID)
	}
	for id := range wrappers {
		require.True(t, listed[id], "%s has a wrapper and no record", id)
	}
}
