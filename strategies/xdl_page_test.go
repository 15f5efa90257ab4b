package strategies_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

// TestFiguresOfXDLPages holds what the pages of slab, buddy and slabbuddy say that the originals
// refuse and reserve to replays.
func TestFiguresOfXDLPages(t *testing.T) {
	mib := func(n device.Size) string { return fmt.Sprintf("%.2g MiB", float64(n)/float64(device.MiB)) }
	reserved := func(r *replay.Result) string { return mib(r.Peak.Reserved) }
	small := `{"region_bytes":"8MiB"}`
	for _, c := range []struct {
		page, strategy, config string
		trace                  *trace.Trace
		says                   func(r *replay.Result) string
	}{
		{"slab", "slab:xdl", "", recorded(t, "meta_llama7b_fsdp8"), func(r *replay.Result) string {
			return fmt.Sprintf("refuses %s of %s requests", units.Count(r.Refused), units.Count(r.Refused+r.Allocs))
		}},
		{"slab", "slab:blaze", "", recorded(t, "meta_llama7b_fsdp8"), func(r *replay.Result) string {
			return fmt.Sprintf("are refused, %d of `%s`", r.Refused, r.Trace)
		}},
		{"buddy", "buddy:xdl", "", recorded(t, "meta_moe_ep_train"), func(r *replay.Result) string {
			return fmt.Sprintf("`%s` has %d of them", r.Trace, r.Refused)
		}},
		{"slab", "slab:xdl", small, oneInThirtyTwo(t, "16KiB"), func(r *replay.Result) string {
			return reserved(r) + " are reserved for " + mib(r.Peak.Requested) + " of live blocks"
		}},
		{"slab", "slab:xdl", `{"region_bytes":"8MiB","segments":1}`, oneInThirtyTwo(t, "16KiB"), func(r *replay.Result) string {
			return "(" + reserved(r) + " with `\"segments\":1`)"
		}},
		{"slabbuddy", "slabbuddy:xdl", small, oneInThirtyTwo(t, "15KiB"), func(r *replay.Result) string {
			return reserved(r) + " for " + mib(r.Peak.Requested) + " of live blocks"
		}},
		{"slabbuddy", "slabbuddy", "", oneInThirtyTwo(t, "15KiB"), func(r *replay.Result) string {
			return "where `slabbuddy` reserves " + reserved(r)
		}},
	} {
		setup, err := strategies.All().Lookup(c.strategy, json.RawMessage(c.config))
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		r, err := replay.Run(c.trace, setup, dev, replay.Options{})
		require.NoError(t, err)
		page, err := os.ReadFile(filepath.Join("..", "docs", "strategies", c.page+".md"))
		require.NoError(t, err)
		require.True(t, strings.Contains(strings.Join(strings.Fields(string(page)), " "), c.says(r)),
			"%s.md does not say of %s on %s: %s", c.page, c.strategy, r.Trace, c.says(r))
	}
}

// recorded returns a recorded trace.
func recorded(t *testing.T, name string) *trace.Trace {
	t.Helper()
	tr, err := workload.OpenRecording(name)
	require.NoError(t, err)
	return tr
}

// oneInThirtyTwo returns the trace that the pages of slab and slabbuddy make with awk: every 32nd
// block of a size lives on, and all others are freed at once.
func oneInThirtyTwo(t *testing.T, size string) *trace.Trace {
	t.Helper()
	var b strings.Builder
	for i := 1; i <= 4096; i++ {
		fmt.Fprintln(&b, "a", i, size)
		if i%32 != 0 {
			fmt.Fprintln(&b, "f", i)
		}
	}
	tr, err := trace.Read(strings.NewReader(b.String()), "starve", trace.Options{})
	require.NoError(t, err)
	return tr
}
