package bfc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

func TestConfigIsValidated(t *testing.T) {
	for _, c := range []struct {
		config bfc.Config
		want   string
	}{
		{bfc.Config{Variant: "2019"}, `bfc: variant "2019": want "2016", "2024" or "2026"`},
		{bfc.Config{Spatial: true}, `bfc: spatial: needs variant "2026"`},
		{bfc.Config{Variant: bfc.V2026, Spatial: true, AllowGrowth: true}, `bfc: spatial: excludes allow_growth`},
		{bfc.Config{Variant: bfc.V2016, Timing: true}, `bfc: timing: variant "2016" has none`},
		{bfc.Config{Variant: bfc.V2016, GarbageCollection: true}, `bfc: garbage_collection: variant "2016" has none`},
		{bfc.Config{Variant: bfc.V2016, CoalesceRegions: true}, `bfc: coalesce_regions: variant "2016" has none`},
		{bfc.Config{Variant: bfc.V2016, FragmentationFraction: 0.5}, `bfc: fragmentation_fraction: variant "2016" has none`},
		{bfc.Config{Variant: bfc.V2016, Spatial: true}, `bfc: spatial: needs variant "2026"`},
		{bfc.Config{FragmentationFraction: math.NaN()}, `bfc: fragmentation_fraction: NaN is no number of bytes in a limit`},
		{bfc.Config{FragmentationFraction: math.Inf(1)},
			`bfc: fragmentation_fraction: +Inf is no number of bytes in a limit`},
		{bfc.Config{FragmentationFraction: 1e9}, `bfc: fragmentation_fraction: 1e+09 of the limit does not fit 63 bits`},
	} {
		_, err := bfc.New(nil, c.config)
		require.EqualError(t, err, c.want)
	}
}

func TestZeroConfigIsTheAllocatorOf2024(t *testing.T) {
	r := newRig(t, bfc.Config{}, sim.Config{})
	require.Equal(t, bfc.Config{Variant: bfc.V2024, Limit: device.TiB}, r.Config())
	require.Equal(t, bfc.Config{Limit: gib}, bfc.Config{}.ForCapacity(gib))
	require.Zero(t, r.dev.Usage().Calls, "nothing is taken before the first request")
}

func TestFreeOfAnythingElseIsRefused(t *testing.T) {
	for _, c := range []bfc.Config{{}, {Timing: true}, {Variant: bfc.V2016}, {Variant: bfc.V2026, Spatial: true},
		{Mended: true}} {
		c.Limit = mib
		r := newRig(t, c, sim.Config{})
		require.ErrorIs(t, r.Free(sim.Base), alloc.ErrInvalidFree, "before the first region")
		a, b, d := r.alloc(1024), r.alloc(1024), r.alloc(1024)
		r.free(b, d)
		before, stats := r.chunks(), r.Stats()
		for name, addr := range map[string]device.Addr{
			"double":                 b.Addr,
			"double, merged away":    d.Addr,
			"first unit, not start":  a.Addr + 1,
			"end of the first unit":  a.Addr + 255,
			"interior":               a.Addr + 512,
			"free memory":            a.Addr + 8192,
			"just above the region":  sim.Base.Add(mib),
			"below the first region": sim.Base - 256,
			"far away":               math.MaxUint64,
		} {
			require.ErrorIs(t, r.Free(addr), alloc.ErrInvalidFree, name)
		}
		require.NoError(t, r.Free(0), "null is ignored")
		require.Equal(t, before, r.chunks())
		require.Equal(t, stats, r.Stats())
		require.NoError(t, r.Check())
	}
}

func TestSizesThatOverflowAreRefused(t *testing.T) {
	for _, c := range []bfc.Config{{}, {AllowGrowth: true}, {Variant: bfc.V2016}, {Variant: bfc.V2026, Spatial: true},
		{Mended: true}} {
		r := newRig(t, c, sim.Config{Capacity: gib})
		r.alloc(256)
		before := r.chunks()
		require.Equal(t, device.Size(math.MaxUint64-255), r.MaxRequest())
		for _, n := range []device.Size{math.MaxUint64, math.MaxUint64 - 254} {
			_, err := r.Alloc(alloc.Request{Size: n})
			require.ErrorIs(t, err, alloc.ErrInvalidRequest, "%d", n)
			why, _ := r.LastRefusal()
			require.Equal(t, power.ReasonOverflow, why.Reason)
		}
		for _, n := range []device.Size{math.MaxUint64 - 255, 1<<63 + 1, 1 << 63} {
			r.oom(alloc.Request{Size: n})
		}
		require.Equal(t, before, r.chunks())
		require.Equal(t, uint64(3), r.Stats().OOMs)
	}
}

func TestLargestLimitIsAccepted(t *testing.T) {
	for _, growth := range []bool{false, true} {
		r := newRig(t, bfc.Config{Limit: math.MaxUint64, AllowGrowth: growth}, sim.Config{Capacity: gib})
		r.oom(alloc.Request{Size: 1 << 62})
		for range 3 { // each region doubles what the next is meant to be
			r.alloc(256 * mib)
		}
		r.oom(alloc.Request{Size: math.MaxUint64 - 255})
		require.GreaterOrEqual(t, r.Stats().NextRegion, device.Size(1<<63))
	}
}

func TestRefusalIsDescribed(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 4 * mib, AllowGrowth: true}, sim.Config{Capacity: 3 * mib})
	_, ok := r.LastRefusal()
	require.False(t, ok)
	r.alloc(mib)
	q := alloc.Request{Size: 2 * mib, Tag: 7}
	r.oom(q)
	why, ok := r.LastRefusal()
	require.True(t, ok)
	require.ErrorIs(t, why.Device, device.ErrOutOfMemory)
	why.Device = nil
	require.Equal(t, power.Refusal{
		Reason: power.ReasonDevice, Request: q, Rounded: 2 * mib, Asked: 2 * mib, LargestHole: mib, Free: mib,
	}, why)
}

func TestDeviceThatBreaksItsContractIsRefused(t *testing.T) {
	for name, dev := range map[string]*oddDevice{
		"misaligned": {shift: 1, size: mib},
		"too small":  {size: mib - 256},
	} {
		a, err := bfc.New(dev, bfc.Config{Limit: mib})
		require.NoError(t, err)
		_, err = a.Alloc(alloc.Request{Size: mib})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory, name)
		require.Equal(t, 1, dev.released, name)
		require.Zero(t, a.Stats().Reserved, name)
		require.NoError(t, a.Check(), name)
	}
}

func TestBytesBehindTheLastUnitAreForgotten(t *testing.T) {
	dev := &oddDevice{size: mib + 300}
	a, err := bfc.New(dev, bfc.Config{Limit: mib})
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: mib})
	require.NoError(t, err)
	require.Equal(t, mib+256, b.Size)
	require.Equal(t, [2]device.Size{mib + 256, 44}, [2]device.Size{a.Stats().Reserved, a.Stats().Forgotten})
	require.NoError(t, a.Check())
	require.NoError(t, a.Close())
	require.Zero(t, a.Stats().Forgotten)
}

// oddDevice grants one region of a fixed size at an odd address.
type oddDevice struct {
	shift    device.Addr
	size     device.Size
	released int
}

func (d *oddDevice) Reserve(_, _ device.Size) (device.Region, error) {
	return device.Region{Addr: sim.Base + d.shift, Size: d.size}, nil
}

func (d *oddDevice) Release(device.Addr) error { d.released++; return nil }
