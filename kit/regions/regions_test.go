package regions_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
)

// log records releases in front of a device.
type log struct {
	device.Source
	released []device.Addr
}

func (l *log) Release(a device.Addr) error {
	l.released = append(l.released, a)
	return l.Source.Release(a)
}

func open(t *testing.T, c sim.Config) (*device.Faults, *sim.Device) {
	d, err := sim.New(c)
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	return f, d
}

func TestAlign(t *testing.T) {
	for n, want := range map[device.Size]device.Size{
		1: 1, 2: 2, 3: 1, 147456: 16384, 64 * device.KiB: 64 * device.KiB,
		2 * device.MiB: 2 * device.MiB, device.GiB: 2 * device.MiB, 3 * device.MiB: device.MiB, 1 << 63: 2 * device.MiB,
	} {
		require.Equal(t, want, regions.Align(n), "%v", n)
	}
}

// TestOrders reserves downwards, so that age and address order are opposite.
func TestOrders(t *testing.T) {
	f, d := open(t, sim.Config{Policy: sim.TopDown})
	var stats alloc.Stats
	l := &log{Source: f}
	s := regions.NewSet(l, &stats)
	var starts []device.Addr
	for i := range int32(4) {
		r, err := s.Reserve(device.MiB, 0, i)
		require.NoError(t, err)
		starts = append(starts, r.Addr)
	}
	require.Equal(t, 4, s.Len())
	for i := range s.Len() {
		require.Equal(t, int32(3-i), s.At(i).Label, "by address")
	}
	h, ok := s.Find(starts[2])
	require.True(t, ok)
	require.Equal(t, int32(2), h.Label)
	_, ok = s.Find(starts[2] + 1)
	require.False(t, ok)
	h, ok = s.Under(starts[2].Add(device.MiB - 1))
	require.True(t, ok)
	require.Equal(t, int32(2), h.Label)
	for _, outside := range []device.Addr{0, starts[3] - 1, starts[0].Add(device.MiB)} {
		_, ok = s.Under(outside)
		require.False(t, ok, "%v", outside)
	}
	require.NoError(t, s.ReleaseAll())
	require.Equal(t, starts, l.released, "oldest first")
	require.Equal(t, alloc.Stats{Reserves: 4, Releases: 4, PeakReserved: 4 * device.MiB}, stats)
	require.Zero(t, d.Usage().Regions)
}

func TestRefusals(t *testing.T) {
	f, d := open(t, sim.Config{})
	var stats alloc.Stats
	s := regions.NewSet(f, &stats)
	f.FailNext(1)
	_, err := s.Reserve(device.MiB, 0, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Equal(t, alloc.Stats{ReserveFailures: 1}, stats)
	r, err := s.Reserve(device.MiB, 0, 0)
	require.NoError(t, err)
	_, err = s.Reserve(device.MiB, 0, 1)
	require.NoError(t, err)

	require.ErrorIs(t, s.Release(r.Addr+1), device.ErrInvalid)
	f.FailNext(1)
	require.ErrorIs(t, s.Release(r.Addr), device.ErrInjected)
	require.Equal(t, 2, stats.Regions)
	f.FailNext(1)
	require.ErrorIs(t, s.ReleaseAll(), device.ErrInjected)
	require.Equal(t, 1, s.Len(), "the second region went, the first stayed")
	require.Equal(t, d.Usage().Held, stats.Reserved)
	kept := slices.Collect(s.WalkSlack)
	require.Equal(t, []alloc.Chunk{{
		Region: r.Addr, Addr: r.Addr, Size: device.MiB, State: alloc.Slack, Class: alloc.NoClass,
	}}, kept)
	require.NoError(t, s.ReleaseAll())
	require.Zero(t, d.Usage().Regions)
}

func TestExcess(t *testing.T) {
	r := device.Region{Addr: 0x1000, Size: 256}
	var got []alloc.Chunk
	yield := func(c alloc.Chunk) bool { got = append(got, c); return false }
	require.True(t, regions.Excess(r, 256, yield))
	require.Empty(t, got)
	require.False(t, regions.Excess(r, 100, yield))
	require.Equal(t, []alloc.Chunk{{
		Region: 0x1000, Addr: 0x1064, Size: 156, State: alloc.Slack, Class: alloc.NoClass,
	}}, got)
}

// null is a device that answers with address zero and no error.
type null struct{}

func (null) Reserve(n, _ device.Size) (device.Region, error) { return device.Region{Size: n}, nil }

func (null) Release(device.Addr) error { return device.ErrInvalid }

func TestNullIsARefusal(t *testing.T) {
	var stats alloc.Stats
	s := regions.NewSet(null{}, &stats)
	_, err := s.Reserve(device.MiB, 0, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Equal(t, alloc.Stats{ReserveFailures: 1}, stats)
	require.Zero(t, s.Len())
}

// TestStaleRegionsGoBackLater discards two regions that the device refuses to take back.
func TestStaleRegionsGoBackLater(t *testing.T) {
	d, err := sim.New(sim.Config{Capacity: 2 * device.MiB})
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	var stats alloc.Stats
	s := regions.NewSet(f, &stats)
	for range 2 {
		_, err := s.Reserve(device.MiB, 0, 0)
		require.NoError(t, err)
	}
	for i := range 2 {
		f.FailNext(1)
		s.Discard(s.At(i).Addr)
	}
	require.Equal(t, []int{2, 2}, []int{s.Stale(), s.Len()})
	f.FailNext(1)
	require.ErrorIs(t, s.Retry(), device.ErrInjected)
	require.Equal(t, []int{1, 1}, []int{s.Stale(), s.Len()})
	_, err = s.Reserve(2*device.MiB, 0, 0)
	require.NoError(t, err, "the device has room once the stale region is back")
	require.Equal(t, []int{0, 1}, []int{s.Stale(), s.Len()})
	require.Equal(t, uint64(1), stats.ReserveFailures)
	require.Equal(t, 2*device.MiB, stats.Reserved)
}
