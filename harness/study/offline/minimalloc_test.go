package offline_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// instances names the variable with the directory of MiniMalloc's challenging instances.
const instances = "VRAMYARD_MINIMALLOC"

// TestMinimallocInstances reaches the published capacity of every instance, which is in its file's
// name, in the steps that a search has by default.
func TestMinimallocInstances(t *testing.T) {
	dir := os.Getenv(instances)
	if dir == "" {
		t.Skipf("set %s to benchmarks/challenging of github.com/google/minimalloc, as docs/offline.md says", instances)
	}
	files, err := filepath.Glob(filepath.Join(dir, "[A-K].*.csv"))
	require.NoError(t, err)
	require.Len(t, files, 11, "instances in %s", dir)
	for _, f := range files {
		name, rest, _ := strings.Cut(filepath.Base(f), ".")
		t.Run(name, func(t *testing.T) {
			text, _, _ := strings.Cut(rest, ".")
			capacity, err := strconv.ParseUint(text, 10, 63)
			require.NoError(t, err)
			tr, err := formats.Open(f, formats.Options{})
			require.NoError(t, err)
			p, err := offline.Of(tr, offline.Options{})
			require.NoError(t, err)
			s := search(t, p, offline.Limits{Capacity: device.Size(capacity)})
			require.LessOrEqual(t, uint64(s.Height), capacity)
			t.Logf("%d buffers, bound %d, height %d, %d nodes, %d steps", len(p.Buffers()), p.LowerBound(), s.Height,
				s.Nodes, s.Steps)
		})
	}
}
