package vmm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/vmm"
)

// newOn returns an allocator over a device of so many pages of 4 KiB.
func newOn(t *testing.T, pages device.Size, c vmm.Config) (*vmm.Allocator, *sim.Device) {
	t.Helper()
	gpu, err := sim.New(sim.Config{Capacity: pages * grain, Align: grain, Granularity: grain})
	require.NoError(t, err)
	a, err := vmm.New(gpu, c)
	require.NoError(t, err)
	return a, gpu
}

// grant allocates n bytes.
func grant(t *testing.T, a *vmm.Allocator, n device.Size) device.Addr {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: n})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr
}

func release(t *testing.T, a *vmm.Allocator, at ...device.Addr) {
	t.Helper()
	for _, b := range at {
		require.NoError(t, a.Free(b))
		require.NoError(t, a.Check())
	}
}

func TestMemoryIsMappedAsItIsWanted(t *testing.T) {
	a, gpu := newOn(t, 16, vmm.Config{})
	require.True(t, gpu.Usage().Empty(), "nothing is reserved before the first request")
	first := grant(t, a, 100)
	require.Equal(t, grain, a.Stats().Reserved)
	require.Equal(t, 18*grain, gpu.Usage().Space, "nine eighths")
	grant(t, a, grain)
	require.Equal(t, 2*grain, a.Stats().Reserved, "the rest of the first page serves the second block too")
	release(t, a, first)
	require.Equal(t, 2*grain, a.Stats().Reserved, "freed memory stays")
}

func TestPagesAreMappedWhereFewestAreMissing(t *testing.T) {
	a, _ := newOn(t, 16, vmm.Config{})
	var at [8]device.Addr
	for i := range at {
		at[i] = grant(t, a, 2*grain)
	}
	// A hole of four pages without memory; one of two pages with, and two without, behind it.
	release(t, a, at[0], at[1], at[5])
	_, err := a.Trim()
	require.NoError(t, err)
	release(t, a, at[4])
	require.Equal(t, 10*grain, a.Stats().Reserved)
	require.Equal(t, at[4], grant(t, a, 4*grain))
	require.Equal(t, 12*grain, a.Stats().Reserved)
	require.Equal(t, at[0], grant(t, a, 4*grain), "the hole comes before the end of the range")
}

func TestTheLastPagesAreUsedAtTheEndOfARange(t *testing.T) {
	a, _ := newOn(t, 16, vmm.Config{Release: true, KeepBytes: 3 * grain, Fit: vmm.FitFirst, PageBytes: 2 * grain,
		RangeBytes: 8 * grain})
	grant(t, a, 24_000)
	at := grant(t, a, 1793)
	grant(t, a, 16_385)
	_, err := a.Alloc(alloc.Request{Size: 1, Align: 64 * grain})
	require.NoError(t, err)
	r := alloc.Request{Size: 8193}
	require.True(t, power.CanPlace(a, r, []device.Addr{at}))
	release(t, a, at)
	require.Equal(t, at, grant(t, a, r.Size), "elsewhere two pages are missing, and one is left")
}

func TestMemoryIsMappedBelowWhatIsFree(t *testing.T) {
	a, _ := newOn(t, 16, vmm.Config{})
	var at [4]device.Addr
	for i := range at {
		at[i] = grant(t, a, 2*grain)
	}
	release(t, a, at[0])
	_, err := a.Trim()
	require.NoError(t, err)
	release(t, a, at[1])
	require.Equal(t, at[0].Add(grain), grant(t, a, 3*grain), "one page is missing if it ends where the free ones do")
	require.Equal(t, 7*grain, a.Stats().Reserved)
}

func TestFirstFitTakesTheLowest(t *testing.T) {
	for _, c := range []struct {
		fit  string
		want int
	}{{vmm.FitBest, 2}, {vmm.FitFirst, 0}} {
		a, _ := newOn(t, 64, vmm.Config{Fit: c.fit})
		var at []device.Addr
		for _, n := range []device.Size{3 * grain, 1, 2 * grain, 1} {
			at = append(at, grant(t, a, n))
		}
		release(t, a, at[0], at[2])
		require.Equal(t, at[c.want], grant(t, a, 2*grain), c.fit)
	}
}

func TestFreePagesGoBackAtOnce(t *testing.T) {
	a, gpu := newOn(t, 16, vmm.Config{Release: true, KeepBytes: 2 * grain})
	blocks := []device.Addr{grant(t, a, 2*grain), grant(t, a, 3*grain)}
	release(t, a, blocks[0])
	require.Equal(t, 5*grain, gpu.Usage().Held, "so much is kept")
	release(t, a, blocks[1])
	require.Zero(t, gpu.Usage().Held)
	require.Equal(t, 1, a.Stats().Regions, "addresses stay")
	n, err := a.Trim()
	require.NoError(t, err)
	require.Zero(t, n)
	require.True(t, gpu.Usage().Empty())
}

func TestMoreRangesAreTaken(t *testing.T) {
	a, gpu := newOn(t, 16, vmm.Config{RangeBytes: 3 * grain})
	grant(t, a, 2*grain)
	grant(t, a, 2*grain)
	require.Equal(t, 2, a.Stats().Regions)
	grant(t, a, 7*grain)
	require.Equal(t, 13*grain, gpu.Usage().Space, "as large as the request needs")
	require.NoError(t, a.Close())
	require.True(t, gpu.Usage().Empty())
}

func TestHopelessRequestsMakeNoCalls(t *testing.T) {
	a, gpu := newOn(t, 16, vmm.Config{})
	grant(t, a, 10*grain)
	before := gpu.Usage().Calls.Total()
	for range 3 {
		_, err := a.Alloc(alloc.Request{Size: 7 * grain})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	}
	require.Equal(t, before, gpu.Usage().Calls.Total())
	why, ok := a.LastRefusal()
	require.True(t, ok)
	require.Equal(t, power.ReasonLimit, why.Reason)
}

// TestNothingIsLostWhenTheDeviceRefuses refuses each call of a run in turn, and then calls by
// chance, up to most of them.
func TestNothingIsLostWhenTheDeviceRefuses(t *testing.T) {
	var plans []device.FaultPlan
	for n := range uint64(80) {
		plans = append(plans, device.FaultPlan{Nth: n + 1},
			device.FaultPlan{Seed: n, Probability: 0.1}, device.FaultPlan{Seed: n, Probability: 0.4},
			device.FaultPlan{Seed: n, Probability: 0.8})
	}
	for _, plan := range plans {
		gpu, err := sim.New(sim.Config{Capacity: 16 * grain, Align: grain, Granularity: grain})
		require.NoError(t, err)
		faults, err := device.NewFaults(gpu, plan)
		require.NoError(t, err)
		a, err := vmm.New(faults, vmm.Config{})
		require.NoError(t, err)
		survive(t, a)
		err = a.Close()
		for range 1_000 {
			if err == nil {
				break
			}
			require.NoError(t, a.Check(), "%+v", plan)
			err = a.Close()
		}
		require.NoError(t, err, "%+v", plan)
		require.True(t, gpu.Usage().Empty(), "%+v", plan)
		require.Zero(t, a.Stats().Reserved+a.Stats().Forgotten)
	}
}

// survive makes calls of which any may fail for want of memory.
func survive(t *testing.T, a *vmm.Allocator) {
	t.Helper()
	var held []device.Addr
	for i := range 30 {
		switch i % 6 {
		case 0, 1, 2:
			if b, err := a.Alloc(alloc.Request{Size: device.Size(i%8+1) * grain / 2}); err == nil {
				held = append(held, b.Addr)
			}
		case 3, 4:
			if len(held) > 0 {
				require.NoError(t, a.Free(held[0]))
				held = held[1:]
			}
		case 5:
			_, _ = a.Trim() // what the device refuses is no mistake of the allocator
		}
		require.NoError(t, a.Check())
	}
}

func TestConfigurationIsJudged(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for field, c := range map[string]vmm.Config{
		"quantum":     {Quantum: 300},
		"fit":         {Fit: "worst"},
		"page_bytes":  {PageBytes: device.MiB},
		"range_bytes": {RangeBytes: 1 << 61},
		"limit":       {Limit: 1 << 61},
		"keep_bytes":  {KeepBytes: 1},
	} {
		_, err := vmm.New(gpu, c)
		require.ErrorContains(t, err, "vmm: "+field)
	}
	a, err := vmm.New(gpu, vmm.Config{})
	require.NoError(t, err)
	c := a.Config()
	require.Equal(t, []device.Size{2 * device.MiB, device.TiB, 9 * device.TiB / 8},
		[]device.Size{c.PageBytes, c.Limit, c.RangeBytes})
	require.Equal(t, device.Size(512), c.ForCapacity(512).Limit)
}

// plain is a device that hands out regions and nothing else.
type plain struct{ device.Source }

func TestDevicesWithoutVirtualMemoryAreRefused(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = vmm.New(plain{gpu}, vmm.Config{})
	require.ErrorIs(t, err, device.ErrUnsupported)
}
