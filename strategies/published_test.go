package strategies_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// TestPublishedMemory holds the memory that the original programs took for the yardsticks, as
// it was measured with them. What was reserved agrees to the last digit that was written down,
// but for a region that the originals held for a block of 256 bytes before they began: XDL's slab
// on w3, which asks for no small block, has one less here. Addresses, which mean something of
// BFC's fixed pool, the smallest power of two that serves, agree to a quarter of a percent.
func TestPublishedMemory(t *testing.T) {
	for _, c := range []struct {
		name, config, workload string
		live                   int
		address, reserved      float64 // 0: not known
	}{
		{"bfc", `{"limit":"2GiB"}`, "w1", 1_000, 1.250, 2.448},
		{"bfc", `{"limit":"8GiB"}`, "w1", 10_000, 1.181, 1.312},
		{"bfc", `{"limit":"32GiB"}`, "w2", 0, 1.009, 1.243},
		{"bfc", `{"limit":"16GiB"}`, "w3", 0, 1.294, 1.727},
		{"bfc:growth", `{"limit":"1TiB"}`, "w1", 1_000, 0, 2.446},
		{"bfc:growth", `{"limit":"1TiB"}`, "w2", 0, 0, 1.243},
		{"bfc:growth", `{"limit":"1TiB"}`, "w3", 0, 0, 1.727},
		{"buddy:xdl", "", "w1", 1_000, 0, 2.448},
		{"buddy:xdl", "", "w1", 10_000, 0, 1.640},
		{"buddy:xdl", "", "w2", 0, 0, 1.087},
		{"buddy:xdl", "", "w3", 0, 0, 1.511},
		{"slabbuddy:xdl", "", "w1", 1_000, 0, 3.672},
		{"slabbuddy:xdl", "", "w1", 10_000, 0, 1.804},
		{"slabbuddy:xdl", "", "w2", 0, 0, 1.126},
		{"slabbuddy:xdl", "", "w3", 0, 0, 1.511}, // 1.619 with that region
		{"slab:blaze", "", "w1", 1_000, 0, 2.448},
		{"slab:blaze", "", "w1", 10_000, 0, 1.640},
		{"slab:blaze", "", "w3", 0, 0, 2.159},
	} {
		shape, err := workload.Lookup(c.workload)
		require.NoError(t, err)
		p := shape.Default
		p.Live = c.live
		w, err := shape.New(p)
		require.NoError(t, err)
		s, err := strategies.All().Lookup(c.name, json.RawMessage(c.config))
		require.NoError(t, err)

		load := bench.NewWorkload(w.Program(), workload.MaxSize)
		f, err := load.Figures(bench.Candidate{Name: s.Name, New: s.New})
		require.NoError(t, err)
		live := float64(load.PeakLive)
		if c.address != 0 {
			require.InDelta(t, c.address, float64(f.Address)/live, .0025, "%s on %s: address", c.name, w)
		}
		require.InDelta(t, c.reserved, float64(f.Reserved)/live, .0005, "%s on %s: reserved", c.name, w)
	}
}
