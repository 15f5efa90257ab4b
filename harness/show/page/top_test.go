package page_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/top"
)

// TestPagesShowHoldersOfMemory reads the flame graphs of a page.
func TestPagesShowHoldersOfMemory(t *testing.T) {
	tr := read(t, "a 0 3MiB tag=weights:fc\na 1 1MiB tag=grad:fc\nf 1\nrefused 8MiB\n")
	r := reportOf(t, tr, "bfc", 32*device.MiB)
	var err error
	r.Traces[0].Top, err = top.Measure(tr, nil)
	require.NoError(t, err)
	about, _ := data(t, written(t, r))
	got := about["traces"].([]any)[0].(map[string]any)["top"].(map[string]any)
	require.Equal(t, []any{"all live blocks", "weights", "fc", "grad"}, got["names"])
	moments := got["moments"].([]any)
	require.Len(t, moments, 2)
	const mib = float64(device.MiB)
	box := func(name, bytes float64, category float64, below ...any) []any {
		if below == nil {
			below = []any{}
		}
		return []any{name, bytes, 1.0, category, below}
	}
	weights := box(1, 3*mib, 0, box(2, 3*mib, 0))
	require.Equal(t, []any{0.0, 4 * mib, 2.0, 0.0, []any{weights, box(3, mib, 2, box(2, mib, 2))}},
		moments[0].(map[string]any)["flame"])
	require.Equal(t, box(0, 3*mib, 0, weights), moments[1].(map[string]any)["flame"])
	require.Equal(t, "last refused request", moments[1].(map[string]any)["name"])
}
