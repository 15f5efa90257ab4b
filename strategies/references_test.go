package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies"
)

// referenced returns every strategy that frees by reference, by name, on devices of their own.
func referenced(t *testing.T) map[string]alloc.Strategy {
	t.Helper()
	all := map[string]alloc.Strategy{}
	for _, name := range strategies.All().Names() {
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{Capacity: device.GiB, Align: 256})
		require.NoError(t, err)
		s, err := setup.ForCapacity(device.GiB).New(dev)
		require.NoError(t, err)
		if power.Has(s, power.PowerReferenced) {
			all[name] = s
		}
	}
	return all
}

// fill returns blocks of different sizes.
func fill(t *testing.T, s alloc.Strategy, n int) (all []alloc.Block) {
	t.Helper()
	for i := range n {
		b, err := s.Alloc(alloc.Request{Size: device.Size(256 * (1 + i%7))})
		require.NoError(t, err)
		require.NotZero(t, b.Ref)
		all = append(all, b)
	}
	return all
}

// TestAddressIndexIsDroppedAndRestored frees by reference first, then by address, then by both.
func TestAddressIndexIsDroppedAndRestored(t *testing.T) {
	all := referenced(t)
	for _, name := range []string{"bestfit", "bfc", "caching", "tlsf", "vmm"} {
		require.Contains(t, all, name)
	}
	for name, s := range all {
		blocks := fill(t, s, 500)
		r, ok := power.ReferencedOf(s)
		require.True(t, ok)
		require.NoError(t, r.FreeRef(blocks[0]), name)
		dropped, err := power.MetadataBytes(s)
		require.NoError(t, err)
		require.NoError(t, s.Check(), name)

		require.ErrorIs(t, s.Free(blocks[0].Addr), alloc.ErrInvalidFree, name)
		restored, _ := power.MetadataBytes(s)
		require.Greater(t, restored, dropped, name)
		require.NoError(t, s.Check(), name)
		for i, b := range blocks[1:] {
			if i%2 == 0 {
				b.Ref = 0 // unknown: found by its address
			}
			require.NoError(t, r.FreeRef(b), name)
		}
		again, _ := power.MetadataBytes(s)
		require.Greater(t, again, dropped, "%s: what was restored stays", name)
		require.NoError(t, s.Check(), name)
		require.Zero(t, s.Stats().Live, name)
	}
}

func TestWrongReferencesAreRefused(t *testing.T) {
	for name, s := range referenced(t) {
		dev, err := sim.New(sim.Config{Capacity: device.GiB})
		require.NoError(t, err)
		locked, err := wrap.Locked(s)
		require.NoError(t, err)
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		other, err := setup.ForCapacity(device.GiB).New(dev)
		require.NoError(t, err)
		foreign := fill(t, other, 20)[19]
		blocks := fill(t, s, 10)
		a, b := blocks[3], blocks[4]
		require.NoError(t, power.FreeRef(locked, a), name)
		for what, wrong := range map[string]alloc.Block{
			"stale":              a,
			"of another block":   {Addr: b.Addr, Ref: blocks[5].Ref},
			"a free address":     {Addr: a.Addr, Ref: b.Ref},
			"inside the block":   {Addr: b.Addr + 1, Ref: b.Ref},
			"of no record":       {Addr: b.Addr, Ref: ^uint32(0)},
			"one too large":      {Addr: b.Addr, Ref: 1 << 20},
			"of another heap":    foreign,
			"unknown, and freed": {Addr: a.Addr},
			"zero":               {},
		} {
			err := power.FreeRef(locked, wrong)
			if wrong.Addr == 0 && setup.Promises.FreesNull {
				require.NoError(t, err, "%s: %s", name, what)
			} else {
				require.ErrorIs(t, err, alloc.ErrInvalidFree, "%s: %s", name, what)
			}
			require.Equal(t, 9, s.Stats().Live, "%s: %s", name, what)
			require.NoError(t, s.Check(), "%s: %s", name, what)
		}
		require.NoError(t, s.Close(), name)
		require.ErrorIs(t, power.FreeRef(locked, b), alloc.ErrClosed, name)
	}
}

// TestReferencesFollowMovedBlocks frees blocks where Compact moved them.
func TestReferencesFollowMovedBlocks(t *testing.T) {
	moved := 0
	for name, s := range referenced(t) {
		if !power.Has(s, power.PowerMover) {
			continue
		}
		blocks := fill(t, s, 100)
		for i := 0; i < len(blocks); i += 3 {
			require.NoError(t, power.FreeRef(s, blocks[i]), name)
		}
		_, err := power.Compact(s, func(alloc.Chunk) bool { return true }, func(from, to alloc.Block) {
			for i := range blocks {
				if blocks[i] == from {
					blocks[i] = to
					moved++
				}
			}
		})
		require.NoError(t, err, name)
		for i, b := range blocks {
			if i%3 != 0 {
				require.NoError(t, power.FreeRef(s, b), "%s: block %d", name, i)
			}
		}
		require.NoError(t, s.Check(), name)
	}
	require.Greater(t, moved, 100)
}
