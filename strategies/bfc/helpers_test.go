package bfc_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/invariants"
	"github.com/vramyard/vramyard/strategies/bfc"
)

const (
	kib = device.KiB
	mib = device.MiB
	gib = device.GiB
)

var seed = flag.Uint64("bfc.seed", 1, "first seed of the random tests")

// rig is an allocator over a simulated device, with calls that fail the test.
type rig struct {
	*bfc.Allocator
	t   *testing.T
	dev *device.Faults
}

// newRig returns an allocator over a device that is unlimited unless s says otherwise.
func newRig(t *testing.T, c bfc.Config, s sim.Config) *rig {
	t.Helper()
	inner, err := sim.New(s)
	require.NoError(t, err)
	dev, err := device.NewFaults(inner, device.FaultPlan{})
	require.NoError(t, err)
	a, err := bfc.New(dev, c)
	require.NoError(t, err)
	return &rig{a, t, dev}
}

// alloc grants n bytes.
func (r *rig) alloc(n device.Size) alloc.Block { return r.request(alloc.Request{Size: n}) }

// upper grants n bytes at the upper end.
func (r *rig) upper(n device.Size) alloc.Block {
	return r.request(alloc.Request{Size: n, Hint: alloc.HintHigh})
}

// request grants a request.
func (r *rig) request(q alloc.Request) alloc.Block {
	r.t.Helper()
	b, err := r.Alloc(q)
	require.NoError(r.t, err, "%+v", q)
	r.check()
	return b
}

// oom expects a request to find no memory.
func (r *rig) oom(q alloc.Request) {
	r.t.Helper()
	_, err := r.Alloc(q)
	require.ErrorIs(r.t, err, alloc.ErrOutOfMemory, "%+v", q)
	r.check()
}

// free frees blocks.
func (r *rig) free(blocks ...alloc.Block) {
	r.t.Helper()
	for _, b := range blocks {
		require.NoError(r.t, r.Free(b.Addr))
		r.check()
	}
}

// check verifies the private indexes, after every operation where that was asked for.
func (r *rig) check() {
	r.t.Helper()
	if invariants.Enabled {
		require.NoError(r.t, r.Check())
	}
}

// at returns the offset of a block in the device.
func at(b alloc.Block) device.Size { return b.Addr.Sub(sim.Base) }

// chunks returns what Walk shows.
func (r *rig) chunks() []alloc.Chunk { return slices.Collect(r.Walk) }

// requireDisjoint fails if two blocks overlap.
func requireDisjoint(t *testing.T, blocks []alloc.Block) {
	t.Helper()
	sorted := slices.SortedFunc(slices.Values(blocks), func(a, b alloc.Block) int {
		if a.Addr < b.Addr {
			return -1
		}
		return 1
	})
	for i := 1; i < len(sorted); i++ {
		require.GreaterOrEqual(t, sorted[i].Addr, sorted[i-1].Addr.Add(sorted[i-1].Size))
	}
}

// everySecond splits blocks into those at even and those at odd places.
func everySecond(blocks []alloc.Block) (even, odd []alloc.Block) {
	for i, b := range blocks {
		if i%2 == 0 {
			even = append(even, b)
		} else {
			odd = append(odd, b)
		}
	}
	return even, odd
}
