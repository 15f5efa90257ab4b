package props

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// TestStrategyWithItsOwnCounters has names that PyTorch does not have; one name of PyTorch's makes
// all of them due.
func TestStrategyWithItsOwnCounters(t *testing.T) {
	x, err := newCounterIndex([]string{"pages.current", "steals"})
	require.NoError(t, err)
	require.Empty(t, x.columns)
	_, err = newCounterIndex([]string{"steals", "steals"})
	require.ErrorContains(t, err, "counter steals is there twice")
	_, err = newCounterIndex([]string{"steals", "segment.all.current"})
	require.ErrorContains(t, err, "there is no counter allocation.all.current")
}

func TestSizesOfViolationsAreExact(t *testing.T) {
	err := violated(IRecord, "%+v of %v", alloc.Request{Size: 1<<20 + 1}, blockText{0x1000, 1<<20 + 1})
	require.ErrorContains(t, err, "{Size:1048577 Align:0 ")
	require.ErrorContains(t, err, "of 0x1000+1048577")
	err = violated(IHistory, "%v in %v", []device.Region{{Addr: 0x1000, Size: 1<<20 + 1}}, []span{{0x1000, 0x2000}})
	require.ErrorContains(t, err, "[{Addr:0x1000 Size:1048577}] in [0x1000+4096]")
}
