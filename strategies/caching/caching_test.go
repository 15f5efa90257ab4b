package caching_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/caching"
)

const mib = device.MiB

// bench is an allocator over a simulated device that charges pages of 2 MiB, as a GPU does.
type bench struct {
	*caching.Allocator
	t   *testing.T
	dev *sim.Device
}

func newBench(t *testing.T, capacity device.Size, c caching.Config) *bench {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: capacity, Round: 2 * mib, Charge: 2 * mib})
	require.NoError(t, err)
	a, err := caching.New(dev, c)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, a.Check())
		require.NoError(t, a.Close())
		u := dev.Usage()
		require.True(t, u.Empty())
	})
	return &bench{a, t, dev}
}

func (b *bench) alloc(n device.Size, s device.Stream) device.Addr {
	b.t.Helper()
	got, err := b.Alloc(alloc.Request{Size: n, Stream: s})
	require.NoError(b.t, err)
	return got.Addr
}

func (b *bench) free(a device.Addr) {
	b.t.Helper()
	require.NoError(b.t, b.Free(a))
}

func (b *bench) oom(n device.Size) {
	b.t.Helper()
	_, err := b.Alloc(alloc.Request{Size: n})
	require.ErrorIs(b.t, err, alloc.ErrOutOfMemory)
}

func (b *bench) counter(name string) (v int64) {
	b.t.Helper()
	found := false
	for n, value := range b.Counters {
		if n == name {
			v, found = value, true
		}
	}
	require.True(b.t, found, name)
	return v
}

func TestNewRefusesWhatTheDeviceCannotDo(t *testing.T) {
	for name, c := range map[string]struct {
		dev  sim.Config
		conf caching.Config
		want string
	}{
		"a share of what": {sim.Config{}, caching.Config{MemoryFraction: 0.5}, "the capacity of the device is unknown"},
		"pages": {
			sim.Config{Granularity: 4 * mib}, caching.Config{Conf: "expandable_segments:True"}, "the device has pages of 4MiB",
		},
		"rules": {sim.Config{}, caching.Config{Rules: "2.5"}, `rules "2.5"`},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := sim.New(c.dev)
			require.NoError(t, err)
			_, err = caching.New(dev, c.conf)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := caching.New(plain{}, caching.Config{Conf: "expandable_segments:True"})
	require.ErrorIs(t, err, device.ErrUnsupported)
}

// plain is a source with nothing but regions.
type plain struct{ dev device.Source }

func (p plain) Reserve(size, align device.Size) (device.Region, error) {
	return p.dev.Reserve(size, align)
}

func (p plain) Release(at device.Addr) error { return p.dev.Release(at) }

// TestWithoutStreamsNothingIsWaitedFor frees a block that another stream uses, now and while
// requests are redirected.
func TestWithoutStreamsNothingIsWaitedFor(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := caching.New(plain{dev}, caching.Config{})
	require.NoError(t, err)
	b := bench{a, t, dev}
	for _, redirected := range []bool{false, true} {
		at := b.alloc(4*mib, 0)
		require.NoError(t, b.RecordStream(at, 5))
		if redirected {
			require.NoError(t, b.BeginPool(1, power.AllStreams))
		}
		b.free(at)
		if redirected {
			require.NoError(t, b.EndPool(1))
		}
		require.Equal(t, at, b.alloc(4*mib, 0))
		b.free(at)
		require.NoError(t, b.Check())
	}
	require.NoError(t, b.Close())
}

// The original asks the device after it has waited for everything, and does not look at what that
// made free.
func TestTheSearchAfterTheFlushIsWhatMendedAdds(t *testing.T) {
	for _, mended := range []bool{false, true} {
		b := newBench(t, 64*mib, caching.Config{Mended: mended})
		b.free(b.alloc(60*mib, 0))
		first := b.alloc(40*mib, 0)
		b.alloc(18*mib, 0)
		require.NoError(t, b.RecordStream(first, 5))
		b.free(first)
		if !mended {
			b.oom(38 * mib)
			require.EqualValues(t, 1, b.counter("num_alloc_retries"))
		}
		require.Equal(t, first, b.alloc(38*mib, 0))
	}
}

func TestAgesNeedABoundUnlessMended(t *testing.T) {
	const conf = "garbage_collection_threshold:0.3"
	for _, c := range []struct {
		caching.Config
		frees int64
	}{
		{caching.Config{Conf: conf}, 0},
		{caching.Config{Conf: conf, Mended: true}, 1},
		{caching.Config{Conf: conf, Rules: caching.Rules26, MemoryFraction: 1}, 1},
		{caching.Config{Conf: conf, Rules: caching.Rules211, MemoryFraction: 1}, 0},
	} {
		b := newBench(t, 100*mib, c.Config)
		b.free(b.alloc(40*mib, 0))
		b.alloc(50*mib, 0)
		require.Equal(t, c.frees, b.counter("num_device_free"), "%+v", c)
	}
}

// What is recorded while requests are redirected is not waited for if the block is freed then.
func TestUsesDuringRedirectionCountWhereMended(t *testing.T) {
	for _, mended := range []bool{false, true} {
		b := newBench(t, 100*mib, caching.Config{Mended: mended})
		at := b.alloc(5*mib, 0)
		require.NoError(t, b.BeginPool(7, 3))
		require.NoError(t, b.RecordStream(at, 1))
		b.free(at)
		require.NotZero(t, b.Stats().Active-b.Stats().Allocated, "deferred")
		_, err := b.Poll()
		require.NoError(t, err)
		require.NotZero(t, b.Stats().Active-b.Stats().Allocated, "nobody looks while requests are redirected")
		require.NoError(t, b.EndPool(7))
		next := b.alloc(5*mib, 0)
		require.Equal(t, !mended, next == at)
		require.NoError(t, b.dev.Drain(1))
		require.NoError(t, b.ReleasePool(7))
	}
}

func TestAPoolLivesUntilNobodyUsesIt(t *testing.T) {
	b := newBench(t, 100*mib, caching.Config{})
	require.ErrorIs(t, b.BeginPool(0, power.AllStreams), alloc.ErrInvalidPool)
	require.ErrorIs(t, b.EndPool(4), alloc.ErrInvalidPool)
	require.ErrorIs(t, b.ReleasePool(4), alloc.ErrInvalidPool)
	require.NoError(t, b.BeginPool(4, power.AllStreams))
	at := b.alloc(mib, 0)
	require.NoError(t, b.EndPool(4))
	b.free(at)
	require.NotEqual(t, at, b.alloc(mib, 0), "nobody else gets it")
	n, err := b.Trim()
	require.NoError(t, err)
	require.Zero(t, n, "it has a user")
	require.NoError(t, b.ReleasePool(4))
	require.ErrorIs(t, b.ReleasePool(4), alloc.ErrInvalidPool)
	require.NoError(t, b.BeginPool(4, 0), "what was released and not forgotten is revived")
	require.Equal(t, at, b.alloc(mib, 0))
	require.NotEqual(t, at, b.alloc(mib, 2), "another stream is not redirected")
}

func TestRequestsBeyondAllSegments(t *testing.T) {
	for _, mended := range []bool{false, true} {
		b := newBench(t, 40*mib, caching.Config{Conf: "expandable_segments:True", Mended: mended})
		b.oom(80 * mib)
		want := 2 // one for each time the device was asked
		if mended {
			want = 0
		}
		require.Equal(t, want, b.dev.Usage().Ranges)
	}
}

func TestHistoryTellsWhatHappensToSegments(t *testing.T) {
	b := newBench(t, 64*mib, caching.Config{})
	var kinds []string
	b.SetHistory(func(x power.Action) { kinds = append(kinds, x.Kind.String()) })
	at := b.alloc(30*mib, 0)
	b.oom(50 * mib)
	require.NoError(t, b.RecordStream(at, 1))
	b.free(at)
	_, err := b.Trim()
	require.NoError(t, err)
	b.SetHistory(nil)
	b.free(b.alloc(30*mib, 0))
	require.Equal(t, []string{"segment_alloc", "oom", "free_completed", "segment_free"}, kinds)
}

// opening is what the walk of an allocator shows after a mixed history, with the device that holds
// it.
func opening(t *testing.T) (*bench, []alloc.Chunk) {
	b := newBench(t, 0, caching.Config{})
	var live []device.Addr
	for i := range device.Size(60) {
		live = append(live, b.alloc((i*i%37+1)*300_001, device.Stream(i%3)))
		if i%2 == 0 {
			k := int(i*7) % len(live)
			b.free(live[k])
			live = slices.Delete(live, k, k+1)
		}
	}
	return b, slices.Collect(b.Walk)
}

func TestOpenGoesOnWhereAnotherStopped(t *testing.T) {
	b, chunks := opening(t)
	a, err := caching.Open(b.dev, caching.Config{}, chunks)
	require.NoError(t, err)
	require.Equal(t, chunks, slices.Collect(a.Walk))
	require.Zero(t, a.Stats().Allocs)
	// Both make the same decisions from here on, as far as no segment is needed.
	for _, n := range []device.Size{700, 40_000, 900_000, 1_500_000} {
		want, err := b.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		got, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		require.Equal(t, want.Addr, got.Addr)
		require.Equal(t, want.Size, got.Size)
		require.NoError(t, a.Free(got.Addr))
		b.free(want.Addr)
	}
	// A segment without live blocks goes back, any other does not.
	for _, c := range chunks {
		if c.State == alloc.Live {
			require.ErrorIs(t, a.ReleaseSegment(c.Region), device.ErrInvalid)
			break
		}
	}
	require.ErrorIs(t, a.ReleaseSegment(1), device.ErrInvalid)
}

// withoutOne takes a chunk out of the middle of a segment.
func withoutOne(c []alloc.Chunk) []alloc.Chunk {
	for i := 1; ; i++ {
		if c[i-1].Region == c[i+1].Region {
			return slices.Delete(c, i, i+1)
		}
	}
}

// growing makes the segment of the first chunk one that grows, without the others.
func growing(c []alloc.Chunk) []alloc.Chunk {
	for i := range c {
		if c[i].Region != c[0].Region {
			return c[:i]
		}
		c[i].Owner = power.OwnerExpandable
	}
	return c
}

// TestOpenTakesOverSegmentsThatGrow adopts a range with one page, in which there is a gap on both
// sides.
func TestOpenTakesOverSegmentsThatGrow(t *testing.T) {
	const page = 2 * device.MiB
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	r, err := dev.ReserveRange(8*page, 0, 0)
	require.NoError(t, err)
	h, err := dev.CreateHandle(page)
	require.NoError(t, err)
	require.NoError(t, dev.Map(r.Addr.Add(page), page, h, 0))
	var chunks []alloc.Chunk
	at := r.Addr
	for _, c := range []alloc.Chunk{
		{Size: page, State: alloc.Unmapped}, {Size: 1024, State: alloc.Live, Requested: 700},
		{Size: page - 1024, State: alloc.Free},
		{Size: 6 * page, State: alloc.Unmapped},
	} {
		c.Region, c.Addr, c.Class, c.Owner = r.Addr, at, power.ClassSmall, power.OwnerExpandable
		if c.State != alloc.Unmapped {
			c.Stream = 5
		}
		at = c.End()
		chunks = append(chunks, c)
	}
	a, err := caching.Open(dev, caching.Config{Conf: "expandable_segments:True"}, chunks)
	require.NoError(t, err)
	require.Equal(t, chunks, slices.Collect(a.Walk))
	require.Equal(t, page, a.Stats().Reserved)
	for _, want := range []device.Addr{chunks[2].Addr, r.Addr} { // the gap below is the first that is large enough
		got, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 5})
		require.NoError(t, err)
		require.Equal(t, want, got.Addr)
	}
	require.NoError(t, a.Check())
	require.ErrorIs(t, a.ReleaseSegment(r.Addr), device.ErrInvalid, "a live block lies there")
	require.ErrorIs(t, a.ReleaseSegment(1), device.ErrInvalid)
	require.NoError(t, a.Free(r.Addr))
	require.NoError(t, a.ReleaseSegment(r.Addr))
	require.Equal(t, alloc.Unmapped, slices.Collect(a.Walk)[0].State)
}

func TestOpenRefusesWhatCannotBe(t *testing.T) {
	_, chunks := opening(t)
	for name, c := range map[string]struct {
		spoil func([]alloc.Chunk) []alloc.Chunk
		conf  string
		want  string
	}{
		"a gap":       {withoutOne, "", "does not start where the one before ends"},
		"an odd size": {func(c []alloc.Chunk) []alloc.Chunk { c[0].Size++; return c }, "", "want a multiple of 512"},
		"no request": {func(c []alloc.Chunk) []alloc.Chunk { c[0].State, c[0].Requested = alloc.Live, 0; return c }, "",
			"for a request of 0"},
		"another pool": {func(c []alloc.Chunk) []alloc.Chunk {
			c[1].Pool = 9
			return c
		}, "", "of another class, pool or stream"},
		"a class": {func(c []alloc.Chunk) []alloc.Chunk { c[0].Class = 3; return c }, "", "of class 3"},
		"slack":   {func(c []alloc.Chunk) []alloc.Chunk { c[0].State = alloc.Slack; return c }, "", "is slack"},
		"twice": {func(c []alloc.Chunk) []alloc.Chunk { return append(slices.Clone(c), c...) }, "",
			"begins inside the segment at"},
		"expandable": {func(c []alloc.Chunk) []alloc.Chunk { return c }, "expandable_segments:True", "does not grow"},
		"no setting": {growing, "", "but expandable_segments is off"},
		"half a page": {func(c []alloc.Chunk) []alloc.Chunk { return growing(c[:1]) }, "expandable_segments:True",
			"want whole pages of 2MiB"},
		"ranges that overlap": {func(c []alloc.Chunk) []alloc.Chunk {
			one, two := growing(c), c[0]
			one = append(slices.Clone(one), two)
			one[len(one)-1].State, one[len(one)-1].Addr, one[len(one)-1].Size = alloc.Unmapped, one[len(one)-2].End(),
				4*device.MiB
			two.Region = one[len(one)-1].Addr
			two.Addr, two.Size, two.State = two.Region, 2*device.MiB, alloc.Free
			return append(one, two)
		}, "expandable_segments:True", "begins or ends inside the segment at"},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := sim.New(sim.Config{})
			require.NoError(t, err)
			_, err = caching.Open(dev, caching.Config{Conf: c.conf}, c.spoil(slices.Clone(chunks)))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "caching: opening state: ")
		})
	}
}

func TestCountersHavePyTorchsNames(t *testing.T) {
	b := newBench(t, 0, caching.Config{})
	names := map[string]int64{}
	for name, v := range b.Counters {
		names[name] = v
	}
	require.Len(t, names, 9*3*4+2*4+6)
	require.EqualValues(t, -1, names["max_split_size"])
	require.Contains(t, names, "inactive_split_bytes.large_pool.freed")
	_, err := json.Marshal(names)
	require.NoError(t, err)
	for range b.Counters {
		break // stopping early is fine
	}
}
