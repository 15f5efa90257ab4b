package sim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// async allocates a block from a pool.
func async(t *testing.T, d *sim.Device, p device.Pool, n device.Size, s device.Stream) device.Addr {
	t.Helper()
	r, err := d.AllocAsync(p, n, s)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Size, n)
	return r.Addr
}

// of returns an attribute of a pool.
func of(t *testing.T, d *sim.Device, p device.Pool, a device.PoolAttribute) device.Size {
	t.Helper()
	v, err := d.PoolAttribute(p, a)
	require.NoError(t, err)
	return v
}

func TestPoolsAccountForTheirMemory(t *testing.T) {
	d := newDevice(t, sim.Config{Capacity: 40 * device.MiB})
	p, err := d.NewPool(0)
	require.NoError(t, err)
	async(t, d, p, 700, 1)
	u := d.Usage()
	require.Equal(t, []device.Size{32 * device.MiB, 32 * device.MiB}, []device.Size{u.Held, u.Charged})
	require.Zero(t, u.Regions, "regions of pools are nobody else's")
	require.Zero(t, u.Calls[device.CallReserve].Done)
	for range d.Regions {
		t.Fatal("shown as a region")
	}
	require.ErrorIs(t, d.Release(sim.Base), device.ErrInvalid)
	async(t, d, p, 31*device.MiB, 1)
	async(t, d, p, 7*device.MiB, 1) // another region, of the remaining memory
	require.Equal(t, 40*device.MiB, d.Usage().Held)
}

func TestPoolsTrimWhenTheHostWaits(t *testing.T) {
	for _, wait := range []func(*sim.Device, device.Event) error{
		func(d *sim.Device, _ device.Event) error { return d.SyncDevice() },
		func(d *sim.Device, _ device.Event) error { return d.SyncStream(1) },
		func(d *sim.Device, e device.Event) error { return d.SyncEvent(e) },
	} {
		d := newDevice(t, sim.Config{})
		p, err := d.NewPool(0)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, d.FreeAsync(async(t, d, p, 32*device.MiB, 1), 1))
		}
		keep := async(t, d, p, 32*device.MiB, 2)
		e, err := d.NewEvent()
		require.NoError(t, err)
		require.NoError(t, d.Record(e, 1))
		require.NoError(t, d.TrimPool(p, 0))
		require.Equal(t, 32*device.MiB, of(t, d, p, device.ReservedNow), "one was used again, by a wait")
		require.NoError(t, d.FreeAsync(keep, 1))
		require.NoError(t, d.Record(e, 1))
		require.NoError(t, d.TrimPool(p, 0))
		require.Equal(t, 32*device.MiB, of(t, d, p, device.ReservedNow), "the work has not finished")
		require.NoError(t, d.SetPoolAttribute(p, device.ReleaseThreshold, 32*device.MiB))
		require.NoError(t, wait(d, e))
		require.Equal(t, 32*device.MiB, of(t, d, p, device.ReservedNow), "the threshold")
		require.NoError(t, d.SetPoolAttribute(p, device.ReleaseThreshold, 0))
		require.NoError(t, wait(d, e))
		require.Zero(t, d.Usage().Held)
		require.Equal(t, 32*device.MiB, of(t, d, p, device.ReservedHigh))
	}
}

func TestPoolAttributes(t *testing.T) {
	d := newDevice(t, sim.Config{})
	p, err := d.NewPool(64 * device.MiB)
	require.NoError(t, err)
	a := async(t, d, p, device.MiB, 0)
	async(t, d, p, 2*device.MiB, 0)
	require.NoError(t, d.FreeAsync(a, 0))
	for attribute, want := range map[device.PoolAttribute]device.Size{
		device.ReleaseThreshold: 0, device.FollowEvents: 1, device.ReuseFinished: 1, device.InsertWaits: 1,
		device.ReservedNow: 32 * device.MiB, device.ReservedHigh: 32 * device.MiB,
		device.UsedNow: 2 * device.MiB, device.UsedHigh: 3 * device.MiB,
	} {
		require.Equal(t, want, of(t, d, p, attribute), "attribute %d", attribute)
	}
	for attribute := range device.NumPoolAttributes {
		for v := range device.Size(3) {
			flag := attribute >= device.FollowEvents && attribute <= device.InsertWaits
			high := attribute == device.ReservedHigh || attribute == device.UsedHigh
			if attribute == device.ReleaseThreshold || flag && v < 2 || high && v == 0 {
				require.NoError(t, d.SetPoolAttribute(p, attribute, v))
				require.True(t, high || of(t, d, p, attribute) == v)
				continue
			}
			require.ErrorIs(t, d.SetPoolAttribute(p, attribute, v), device.ErrInvalid)
		}
	}
	require.Equal(t, 2*device.MiB, of(t, d, p, device.UsedHigh), "it was reset")
	_, err = d.PoolAttribute(p, device.NumPoolAttributes)
	require.ErrorIs(t, err, device.ErrInvalid)
	_, err = d.AllocAsync(p, 65*device.MiB, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
}

func TestMisuseOfPoolsIsRefused(t *testing.T) {
	d, other := newDevice(t, sim.Config{}), newDevice(t, sim.Config{Ordinal: 1})
	foreign, err := other.NewPool(0)
	require.NoError(t, err)
	gone, err := d.NewPool(0)
	require.NoError(t, err)
	require.NoError(t, d.DestroyPool(gone))
	p, err := d.NewPool(0)
	require.NoError(t, err)
	for _, bad := range []device.Pool{foreign, gone, 77} {
		_, err := d.AllocAsync(bad, 1, 0)
		require.ErrorIs(t, err, device.ErrPool)
		_, err = d.PoolAttribute(bad, device.UsedNow)
		require.ErrorIs(t, err, device.ErrPool)
		require.ErrorIs(t, d.SetPoolAttribute(bad, device.FollowEvents, 1), device.ErrPool)
		require.ErrorIs(t, d.TrimPool(bad, 0), device.ErrPool)
		require.ErrorIs(t, d.DestroyPool(bad), device.ErrPool)
	}
	require.ErrorIs(t, d.DestroyPool(0), device.ErrInvalid)
	for size, want := range map[device.Size]error{0: device.ErrInvalid, ^device.Size(0): device.ErrOutOfMemory} {
		_, err := d.AllocAsync(0, size, 0)
		require.ErrorIs(t, err, want)
	}
	a := async(t, d, p, 1024, 3)
	require.ErrorIs(t, d.DestroyPool(p), device.ErrBusy)
	for _, bad := range []device.Addr{0, a + 512, a - 512} {
		require.ErrorIs(t, d.FreeAsync(bad, 0), device.ErrInvalid)
	}
	require.NoError(t, d.FreeAsync(a, 4))
	require.ErrorIs(t, d.FreeAsync(a, 4), device.ErrInvalid)
	require.NoError(t, d.DestroyPool(p))
	require.Zero(t, d.Usage().Held)
	require.True(t, d.Usage().Empty())
}

// TestPoolsShareTheDevice makes random calls to several pools and keeps the blocks apart.
func TestPoolsShareTheDevice(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	d := newDevice(t, sim.Config{Capacity: 256 * device.MiB, Memory: sim.Placed, Clock: sim.Timed})
	pools := []device.Pool{0}
	for range 2 {
		p, err := d.NewPool(0)
		require.NoError(t, err)
		pools = append(pools, p)
	}
	live := map[device.Addr]device.Region{}
	var keys []device.Addr
	for range 4000 {
		s := device.Stream(rng.IntN(3))
		switch k := rng.IntN(10); {
		case k < 5:
			r, err := d.AllocAsync(pools[rng.IntN(3)], 1+device.Size(rng.Uint64N(8<<20)), s)
			if err != nil {
				require.ErrorIs(t, err, device.ErrOutOfMemory)
				continue
			}
			for _, o := range live {
				require.True(t, r.End() <= o.Addr || o.End() <= r.Addr, "%v and %v overlap", r, o)
			}
			live[r.Addr] = r
			keys = append(keys, r.Addr)
		case k < 9 && len(keys) > 0:
			i := rng.IntN(len(keys))
			require.NoError(t, d.FreeAsync(keys[i], s))
			delete(live, keys[i])
			keys[i], keys = keys[len(keys)-1], keys[:len(keys)-1]
		case rng.IntN(8) == 0:
			require.NoError(t, d.SyncStream(s))
		default:
			require.NoError(t, d.Work(s, rng.Uint64N(5000)))
		}
		require.LessOrEqual(t, d.Usage().Charged, 256*device.MiB)
	}
	for _, a := range keys {
		require.NoError(t, d.FreeAsync(a, 0))
	}
	require.NoError(t, d.SyncDevice())
	require.Zero(t, d.Usage().Held)
	require.Zero(t, d.Physical().Used)
}

func TestTrimReleasesFinishedBlocks(t *testing.T) {
	d := newDevice(t, sim.Config{})
	p, err := d.NewPool(0)
	require.NoError(t, err)
	require.NoError(t, d.FreeAsync(async(t, d, p, 32*device.MiB, 1), 1))
	require.NoError(t, d.TrimPool(p, 0))
	require.Equal(t, 32*device.MiB, of(t, d, p, device.ReservedNow), "the stream may still use it")
	require.NoError(t, d.Drain(1)) // pools are not notified
	require.NoError(t, d.TrimPool(p, 0))
	require.Zero(t, of(t, d, p, device.ReservedNow))
}

func TestDestroyingAPoolWaitsOnItsOwnAccount(t *testing.T) {
	d := newDevice(t, sim.Config{Costs: sim.NoCosts})
	p, err := d.NewPool(0)
	require.NoError(t, err)
	a := async(t, d, p, device.MiB, 1)
	require.NoError(t, d.Work(1, 1000))
	require.NoError(t, d.FreeAsync(a, 1))
	require.NoError(t, d.DestroyPool(p))
	require.Equal(t, uint64(1000), d.Usage().Times[device.CallDestroyPool])
	require.Equal(t, uint64(1000), d.Usage().Time)
}
