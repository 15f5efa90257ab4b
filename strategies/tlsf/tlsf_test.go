package tlsf_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// endless is a device without bound that grants every region above the last.
type endless struct{ next device.Addr }

func (d *endless) Reserve(size, align device.Size) (device.Region, error) {
	r := device.Region{Addr: device.AlignUp(d.next, max(align, 1)), Size: size}
	d.next = r.End()
	return r, nil
}

func (d *endless) Release(device.Addr) error { return nil }

// newWithHole returns an allocator with two free chunks: a hole of the given size, and a tail
// of a quantum if tails are apart.
func newWithHole(t *testing.T, c tlsf.Config, hole device.Size) (*tlsf.Allocator, device.Addr) {
	t.Helper()
	c.Limit = hole + 512
	a, err := tlsf.New(&endless{next: 1 << 20}, c)
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: hole})
	require.NoError(t, err)
	_, err = a.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	require.NoError(t, a.Free(b.Addr))
	require.Equal(t, hole, a.LargestFree())
	return a, b.Addr
}

// TestHoleFromTheBoundOnServes has holes of ordinary and of enormous sizes, where other
// implementations have no lists.
func TestHoleFromTheBoundOnServes(t *testing.T) {
	sizes := []device.Size{256, 8 * device.KiB, 16 * device.KiB, device.MiB, 3 * device.GiB,
		511 * device.GiB, 512 * device.GiB, 513 * device.GiB, device.TiB, 1 << 45, 1 << 50, 1<<59 + 1<<58, 1<<60 - 1024}
	for _, second := range []int{1, 2, 5, 6} {
		for _, n := range sizes {
			for _, n := range []device.Size{n, n + 256} {
				t.Run(fmt.Sprintf("%d/%d", second, uint64(n)), func(t *testing.T) {
					c := tlsf.Config{SecondLevel: second}
					full, err := c.WithDefaults()
					require.NoError(t, err)
					bound := full.Bound(n, 0)
					require.LessOrEqual(t, bound-n, n>>second)

					serves(t, c, bound, n, true)
					if bound > n { // the own class is not looked at, unless one asks for it
						serves(t, c, bound-256, n, false)
						serves(t, c, n, n, false)
						serves(t, tlsf.Config{SecondLevel: second, Scan: 1}, n, n, true)
						serves(t, tlsf.Config{SecondLevel: second, Exhaustive: true}, n, n, true)
					}
				})
			}
		}
	}
}

// serves checks whether a hole of a size serves a request for n bytes.
func serves(t *testing.T, c tlsf.Config, hole, n device.Size, want bool) {
	t.Helper()
	if hole+512 > 1<<60 {
		return
	}
	a, at := newWithHole(t, c, hole)
	b, err := a.Alloc(alloc.Request{Size: n})
	require.NoError(t, a.Check())
	if !want {
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		return
	}
	require.NoError(t, err, "a hole of %d bytes, a request for %d", uint64(hole), uint64(n))
	require.Equal(t, at, b.Addr)
}

func TestTheLargestRequestIsServed(t *testing.T) {
	a, err := tlsf.New(&endless{next: 1 << 20}, tlsf.Config{Limit: 1 << 60})
	require.NoError(t, err)
	for range 3 { // first from the new region, then from the index
		b, err := a.Alloc(alloc.Request{Size: 1 << 60})
		require.NoError(t, err)
		require.NoError(t, a.Check())
		require.NoError(t, a.Free(b.Addr))
	}
	_, err = a.Alloc(alloc.Request{Size: 1<<60 + 1})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
}

// TestAlignedBoundServes checks both sides of the bound of a request with an alignment, over a
// hole that starts where the alignment costs most.
func TestAlignedBoundServes(t *testing.T) {
	for _, align := range []device.Size{512, 4 * device.KiB, 2 * device.MiB, device.TiB, 1 << 50} {
		c, err := tlsf.Config{Tail: tlsf.TailHole, Limit: 1 << 58}.WithDefaults()
		require.NoError(t, err)
		a, err := tlsf.New(&endless{next: 1 << 60}, c)
		require.NoError(t, err)
		_, err = a.Alloc(alloc.Request{Size: 1}) // so that what follows starts a quantum above
		require.NoError(t, err)
		const n = 3 * 256
		hole, err := a.Alloc(alloc.Request{Size: c.Bound(n, align)})
		require.NoError(t, err)
		rest := a.LargestFree()
		_, err = a.Alloc(alloc.Request{Size: device.AlignDown(rest, rest>>5)})
		require.NoError(t, err)
		require.NoError(t, a.Free(hole.Addr))
		b, err := a.Alloc(alloc.Request{Size: n, Align: align})
		require.NoError(t, err, "align %d", uint64(align))
		require.True(t, b.Addr.IsAligned(align))
		require.NoError(t, a.Check())
	}
}

// churned returns an allocator with three holes of one class, freed from the middle, the top,
// the bottom, and their addresses from below.
func churned(t *testing.T, c tlsf.Config) (*tlsf.Allocator, []device.Addr) {
	t.Helper()
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	c.Limit = device.MiB
	a, err := tlsf.New(gpu, c)
	require.NoError(t, err)
	var holes []device.Addr
	for range 3 {
		b, err := a.Alloc(alloc.Request{Size: 4 * device.KiB})
		require.NoError(t, err)
		holes = append(holes, b.Addr)
		_, err = a.Alloc(alloc.Request{Size: 256})
		require.NoError(t, err)
	}
	for _, i := range []int{1, 2, 0} {
		require.NoError(t, a.Free(holes[i]))
	}
	return a, holes
}

func TestOrderOfList(t *testing.T) {
	for _, c := range []struct {
		config tlsf.Config
		want   []int // holes in the order in which they are taken
	}{
		{tlsf.Config{}, []int{0, 2, 1}},
		{tlsf.Config{List: tlsf.ListFIFO}, []int{1, 2, 0}},
		{tlsf.Config{List: tlsf.ListAddress}, []int{0, 1, 2}},
		{tlsf.Config{List: tlsf.ListFIFO, Scan: 3}, []int{0, 1, 2}},
		{tlsf.Config{List: tlsf.ListFIFO, Scan: 2}, []int{1, 0, 2}},
	} {
		a, holes := churned(t, c.config)
		for _, i := range c.want {
			b, err := a.Alloc(alloc.Request{Size: 4 * device.KiB})
			require.NoError(t, err)
			require.Equal(t, holes[i], b.Addr, "%+v", c.config)
		}
	}
}

func TestTailComesLast(t *testing.T) {
	for tail, fromTail := range map[string]bool{tlsf.TailLast: false, tlsf.TailHole: true} {
		gpu, err := sim.New(sim.Config{})
		require.NoError(t, err)
		a, err := tlsf.New(gpu, tlsf.Config{Tail: tail, Limit: 64 * device.KiB})
		require.NoError(t, err)
		hole, err := a.Alloc(alloc.Request{Size: 40 * device.KiB})
		require.NoError(t, err)
		_, err = a.Alloc(alloc.Request{Size: 20 * device.KiB})
		require.NoError(t, err)
		require.NoError(t, a.Free(hole.Addr)) // 40 KiB below, 4 KiB at the end
		b, err := a.Alloc(alloc.Request{Size: 4 * device.KiB})
		require.NoError(t, err)
		require.Equal(t, fromTail, b.Addr != hole.Addr, "tail %s", tail)
	}
}

func TestConfigurationIsJudged(t *testing.T) {
	for field, c := range map[string]tlsf.Config{
		"quantum":      {Quantum: 300},
		"second_level": {SecondLevel: 7},
		"list":         {List: "random"},
		"scan":         {Scan: -1},
		"tail":         {Tail: "first"},
		"growth":       {Growth: "never"},
		"region_bytes": {RegionBytes: 100},
		"keep_bytes":   {KeepBytes: 1},
		"release":      {Release: true},
	} {
		_, err := tlsf.New(&endless{}, c)
		require.ErrorContains(t, err, "tlsf: "+field)
	}
	c, err := tlsf.Config{}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, device.Size(512), c.ForCapacity(512).Limit)
	require.Equal(t, c.Quantum, c.ForCapacity(1).Limit)
	require.True(t, c.Preallocates())
}
