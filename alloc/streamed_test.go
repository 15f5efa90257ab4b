package alloc_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// streamedSubject returns a strategy of the catalogue inside Streamed.
func streamedSubject(t *testing.T, name string, on sim.Config) props.Subject {
	t.Helper()
	setup, err := strategies.All().Lookup(name, nil)
	require.NoError(t, err)
	setup = setup.ForCapacity(on.Capacity)
	s := props.SubjectOfSetup(setup, on)
	s.Name += "/streamed"
	s.Promises.Except = append(slices.Clone(s.Promises.Except), promise.Exception{
		Invariant: props.IHonest.String(), Reason: "a block is refused, although it is free, if a stream can neither be " +
			"marked nor waited for",
	})
	// What is pending may become free with any call, and merge or serve besides.
	s.Promises.ExactNeighbours, s.Promises.ExactPlacer = false, false
	s.New = func(src device.Source) (alloc.Strategy, error) { return wrap.Streamed(src.(device.Device), setup.New) }
	return s
}

// TestStreamedKeepsStreamsApart has the suite, with its model of streams, judge strategies that
// know none: regions that come and go, slots, pages that are unmapped, and memory at two addresses.
func TestStreamedKeepsStreamsApart(t *testing.T) {
	on := sim.Config{Capacity: 64 * device.MiB}
	for _, name := range []string{"bfc:gc", "slab", "vmm:release", "stitch"} {
		s := streamedSubject(t, name, on)
		t.Run(name, func(t *testing.T) {
			propstest.AllocsZero(t, s)
			t.Parallel()
			propstest.Verify(t, s, props.Options{Sequences: 300, Operations: 100, Seed: 1})
			propstest.Verify(t, s.Filled(), props.Options{Sequences: 50, Operations: 100, Seed: 301})
			o := props.Options{Sequences: 10, Operations: 100, Seed: 351}
			o.Faults = 20
			_, err := props.VerifyFaults(s, o)
			require.NoError(t, err)
		})
	}
}

// TestStreamedWaitsOnlyForReusedMemory follows the calls to the device: one stream costs none,
// another one waits for the first on the device, once, and only for memory that the first had.
func TestStreamedWaitsOnlyForReusedMemory(t *testing.T) {
	dev, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bestfit:strict", nil)
	require.NoError(t, err)
	s, err := wrap.Streamed(dev, setup.ForCapacity(64*device.MiB).New)
	require.NoError(t, err)
	calls := func(c device.Call) uint64 { return dev.Usage().Calls[c].Done }
	take := func(on device.Stream, n device.Size) device.Addr {
		b, err := s.Alloc(alloc.Request{Size: n, Stream: on})
		require.NoError(t, err)
		return b.Addr
	}
	first := take(1, 4096)
	require.NoError(t, s.Free(first))
	again := take(1, 4096)
	require.Equal(t, first, again, "one's own memory at once")
	other := take(2, 4096)
	require.Equal(t, uint64(1), calls(device.CallWait), "what was free before there was another stream may be anybody's")
	require.NoError(t, s.Free(again))
	require.Equal(t, first, take(2, 4096))
	require.Equal(t, uint64(2), calls(device.CallWait), "what the first stream freed since")
	require.NoError(t, s.Free(first))
	require.Equal(t, first, take(2, 4096))
	require.Equal(t, uint64(2), calls(device.CallWait), "its own by now")
	require.NoError(t, s.Free(other))
	require.NoError(t, dev.Drain(1))
	take(3, 8192)
	require.Zero(t, calls(device.CallSyncStream)+calls(device.CallSyncDevice)+calls(device.CallSyncEvent),
		"the host waits for nobody")
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
	require.True(t, dev.Usage().Empty())
}

func TestStreamedDoesNotWrapAStreamAwareStrategy(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	s, err := wrap.Streamed(dev, setup.New)
	require.NoError(t, err)
	require.True(t, power.Has(s, power.PowerPrivatePools))
	require.NoError(t, s.Close())
	_, err = wrap.Streamed(struct{ device.Device }{dev}, setup.New)
	require.ErrorContains(t, err, "without streams")
}

func TestStreamedHasNoPrivatePools(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("recall:graph", nil)
	require.NoError(t, err)
	s, err := wrap.Streamed(dev, setup.New)
	require.NoError(t, err)
	require.ErrorIs(t, power.BeginPool(s, 1, 0), alloc.ErrUnsupported)
	require.NoError(t, s.Close())
}

// TestStreamedWaitsForMemoryAtAnotherAddress stitches pages that the first stream freed into a
// range that it never saw.
func TestStreamedWaitsForMemoryAtAnotherAddress(t *testing.T) {
	dev, err := sim.New(sim.Config{Capacity: 8 * device.MiB})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("stitch", nil)
	require.NoError(t, err)
	s, err := wrap.Streamed(dev, setup.ForCapacity(8*device.MiB).New)
	require.NoError(t, err)
	var all []device.Addr
	for _, on := range []device.Stream{1, 1, 1, 2} {
		b, err := s.Alloc(alloc.Request{Size: 2 * device.MiB, Stream: on})
		require.NoError(t, err)
		all = append(all, b.Addr)
	}
	require.NoError(t, s.Free(all[0]))
	require.NoError(t, s.Free(all[2]))
	before := dev.Usage().Calls[device.CallWait].Done
	b, err := s.Alloc(alloc.Request{Size: 4 * device.MiB, Stream: 2})
	require.NoError(t, err)
	require.NotContains(t, all, b.Addr)
	require.Equal(t, before+1, dev.Usage().Calls[device.CallWait].Done)
	require.NoError(t, s.Close())
}
