package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

func TestEveryCallHasAPublishedCost(t *testing.T) {
	costs, ok := sim.Published.Costs()
	require.True(t, ok)
	for c := range device.NumCalls {
		require.NotZero(t, costs[c].Base, c)
		require.NotEmpty(t, costs[c].Source, c)
	}
	free, ok := sim.NoCosts.Costs()
	require.True(t, ok)
	require.Equal(t, sim.Costs{}, free)
	_, ok = sim.CostTable("h300").Costs()
	require.False(t, ok)
}

func TestCostsCountPagesAndBytes(t *testing.T) {
	costs := sim.Costs{
		device.CallMap:  {Base: 100, Page: 7},
		device.CallFill: {Base: 1, Moves: true},
		device.CallWait: {Page: math.MaxUint64},
	}
	for _, c := range []struct {
		call      device.Call
		size      device.Size
		bandwidth uint64
		want      uint64
	}{
		{device.CallMap, 0, 1, 100},
		{device.CallMap, 1, 1, 107},
		{device.CallMap, 2 * device.MiB, 1, 107},
		{device.CallMap, 2*device.MiB + 1, 1, 114},
		{device.CallMap, math.MaxUint64, 1, 100 + 7<<43},
		{device.CallFill, 1000, 1e9, 1001},
		{device.CallFill, 1000, 1e12, 2},
		{device.CallFill, 1001, 1e12, 3}, // begun nanoseconds count
		{device.CallFill, math.MaxUint64, 1e9, math.MaxUint64},
		{device.CallFill, math.MaxUint64, 1, math.MaxUint64},
		{device.CallFill, math.MaxUint64, math.MaxUint64, 1e9 + 1},
		{device.CallWait, 1, 1, math.MaxUint64},
		{device.CallWait, 1 << 40, 1, math.MaxUint64},
	} {
		require.Equal(t, c.want, costs.Of(c.call, c.size, c.bandwidth), "%+v", c)
	}
}

// TestPublishedCostsFitGMLake repeats what the constants were fitted to: memory of 2 GiB in
// pieces, by the calls of virtual memory, against one reservation.
func TestPublishedCostsFitGMLake(t *testing.T) {
	costs, _ := sim.Published.Costs()
	const all = 2 * device.GiB
	reserve := costs.Of(device.CallReserve, all, 1)
	for piece, want := range map[device.Size]float64{2 * device.MiB: 115, device.GiB: 1.5} {
		each := costs.Of(device.CallCreateHandle, piece, 1) + costs.Of(device.CallMap, piece, 1) +
			costs.Of(device.CallSetAccess, piece, 1)
		sum := costs.Of(device.CallReserveRange, all, 1) + uint64(all/piece)*each
		require.InEpsilon(t, want, float64(sum)/float64(reserve), 0.02, piece)
	}
}

// costChecker makes calls of every kind that the device has, and notes what each should take.
type costChecker struct {
	t     *testing.T
	d     *sim.Device
	costs sim.Costs
	made  device.CallSet
	took  uint64
	times device.Times
}

// did checks a call that just returned.
func (c *costChecker) did(call device.Call, size device.Size, err error) {
	c.t.Helper()
	c.made |= device.CallsOf(call)
	if err != nil {
		size = 0
	}
	ns := c.costs.Of(call, size, c.d.Config().Bandwidth)
	c.took += ns
	c.times[call] += ns
	require.Equal(c.t, c.took, c.d.Usage().Time, "%v of %v: %v", call, size, err)
	require.Equal(c.t, c.times, c.d.Usage().Times)
	require.Equal(c.t, c.took, c.d.Now(), "nobody has waited")
}

// memory makes the calls that hand out memory or look at it.
func (c *costChecker) memory(size device.Size) {
	d := c.d
	r, err := d.Reserve(size-100, 0)
	require.NoError(c.t, err)
	c.did(device.CallReserve, r.Size, nil)
	_, err = d.Reserve(device.TiB, 0)
	require.Error(c.t, err)
	c.did(device.CallReserve, device.TiB, err)
	c.did(device.CallFill, 1000, d.Fill(r.Addr, 1000, 1))
	_, _, err = d.Compare(r.Addr, 900, 1)
	c.did(device.CallCompare, 900, err)
	c.did(device.CallFill, 8, d.Fill(0, 8, 1))
	c.did(device.CallRelease, r.Size, d.Release(r.Addr))
	c.did(device.CallRelease, 0, d.Release(r.Addr))
	_, _, err = d.MemoryInfo()
	c.did(device.CallMemoryInfo, 0, err)
}

// virtual makes the calls of virtual memory.
func (c *costChecker) virtual(size device.Size) {
	d := c.d
	r, err := d.ReserveRange(2*size, 0, 0)
	c.did(device.CallReserveRange, 2*size, err)
	h, err := d.CreateHandle(size)
	c.did(device.CallCreateHandle, size, err)
	c.did(device.CallMap, size, d.Map(r.Addr, size, h, 0))
	c.did(device.CallMap, size, d.Map(r.Addr, size, h, 0))
	c.did(device.CallSetAccess, size, d.SetAccess(r.Addr, size, device.AccessReadWrite))
	c.did(device.CallUnmap, size, d.Unmap(r.Addr, size))
	c.did(device.CallReleaseHandle, size, d.ReleaseHandle(h))
	c.did(device.CallReleaseHandle, 0, d.ReleaseHandle(h))
	c.did(device.CallReleaseRange, 2*size, d.ReleaseRange(r.Addr))
}

// streams makes the calls of streams.
func (c *costChecker) streams() {
	d := c.d
	e, err := d.NewEvent()
	c.did(device.CallNewEvent, 0, err)
	c.did(device.CallRecord, 0, d.Record(e, 1))
	_, err = d.Done(e)
	c.did(device.CallDone, 0, err)
	c.did(device.CallWait, 0, d.Wait(2, e))
	c.did(device.CallSyncEvent, 0, d.SyncEvent(e))
	c.did(device.CallSyncStream, 0, d.SyncStream(2))
	c.did(device.CallSyncDevice, 0, d.SyncDevice())
	c.did(device.CallDestroyEvent, 0, d.DestroyEvent(e))
	c.did(device.CallRecord, 0, d.Record(e, 1))
}

// pools makes the calls of pools, which take and give back regions besides.
func (c *costChecker) pools(size device.Size) {
	d := c.d
	inside := func(call, as device.Call) {
		ns := c.costs.Of(call, max(size, 32*device.MiB), d.Config().Bandwidth)
		c.took += ns
		c.times[as] += ns
	}
	p, err := d.NewPool(0)
	c.did(device.CallNewPool, 0, err)
	r, err := d.AllocAsync(p, size, 1)
	require.NoError(c.t, err)
	inside(device.CallReserve, device.CallAllocAsync)
	c.did(device.CallAllocAsync, size, err)
	c.did(device.CallFreeAsync, 0, d.FreeAsync(r.Addr, 1))
	c.did(device.CallFreeAsync, 0, d.FreeAsync(r.Addr, 1))
	_, err = d.AllocAsync(p, size, 1)
	c.did(device.CallAllocAsync, size, err)
	c.did(device.CallDestroyPool, 0, d.DestroyPool(p))
	c.did(device.CallFreeAsync, 0, d.FreeAsync(r.Addr, 1))
	c.did(device.CallSetPoolAttribute, 0, d.SetPoolAttribute(p, device.ReleaseThreshold, 1))
	_, err = d.PoolAttribute(p, device.UsedNow)
	c.did(device.CallPoolAttribute, 0, err)
	c.did(device.CallTrimPool, 0, d.TrimPool(p, 0))
	inside(device.CallRelease, device.CallTrimPool)
	c.did(device.CallDestroyPool, 0, d.DestroyPool(p))
}

// TestEveryCallTakesTheTimeOfTheCostTable also checks that no kind of call was forgotten.
func TestEveryCallTakesTheTimeOfTheCostTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, table := range []sim.CostTable{sim.Published, sim.NoCosts} {
		costs, _ := table.Costs()
		c := &costChecker{t: t, costs: costs, d: newDevice(t, sim.Config{
			Costs: table, Bandwidth: 3e9, Capacity: 8 * device.GiB, Memory: sim.Filled,
		})}
		for range 20 {
			size := device.Size(1+rng.IntN(100)) * 2 * device.MiB
			c.memory(size)
			c.virtual(size)
			c.streams()
			c.pools(size)
		}
		want := ^device.CallSet(0) >> (32 - device.NumCalls)
		require.Equal(t, want, c.made)
	}
}
