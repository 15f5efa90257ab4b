package tiles

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
)

func TestRowIsHalfACacheLine(t *testing.T) {
	require.EqualValues(t, 32, reflect.TypeFor[Row]().Size())
}

// setLive makes a chunk live as Grant does.
func setLive(t *Table, h Handle, requested device.Size, l Label, chain Handle) {
	if t.Rows[h].setLive(requested, chain) || l != (Label{}) || t.labels.cells != nil {
		t.annotate(h, requested, l, 0)
	}
}

func TestSplitAndJoinAreInverse(t *testing.T) {
	table := NewTable()
	h := table.Add(1<<20, 4096)
	require.True(t, table.Fills(h))
	right := table.Split(h, 1024)
	middle := table.Split(h, 256)
	require.False(t, table.Fills(h))
	require.False(t, table.IsTail(middle))
	require.True(t, table.IsTail(right))
	require.Equal(t, 3, table.Len())
	require.Equal(t, Row{Addr: 1<<20 + 256, Size: 768, Prev: h, Next: right}, table.Rows[middle])
	require.Equal(t, middle, table.Rows[right].Prev)

	require.Equal(t, middle, table.Join(None, middle, right))
	require.Equal(t, Row{Addr: 1<<20 + 256, Size: 3840, Prev: h, Next: None}, table.Rows[middle])
	require.Equal(t, h, table.Join(h, middle, None))
	require.True(t, table.Fills(h))
	require.Equal(t, device.Size(4096), table.Rows[h].Size)
	require.Equal(t, 1, table.Len())
}

func TestHandlesAreReusedNewestFirst(t *testing.T) {
	table := NewTable()
	h := table.Add(1<<20, 4096)
	b := table.Split(h, 1024)
	c := table.Split(h, 256)
	table.Join(h, c, b)
	require.Equal(t, c, table.Split(h, 512))
	require.Equal(t, b, table.Split(h, 256))
	require.Len(t, table.Rows, len(noRing)+3)
}

func TestFreeNeighborsReturnsFreeChunksOnly(t *testing.T) {
	table := NewTable()
	a := table.Add(1<<20, 1024)
	c := table.Split(a, 512)
	b := table.Split(a, 256)
	for _, states := range [][3]bool{{true, true, true}, {true, true, false}, {false, true, true}, {false, true, false}} {
		want := [2]Handle{a, c}
		for i, h := range []Handle{a, b, c} {
			table.setFree(h)
			if !states[i] {
				setLive(&table, h, 1, Label{}, 77)
				want[i/2] = None
			}
		}
		prev, next := table.FreeNeighbors(b)
		require.Equal(t, want, [2]Handle{prev, next}, "%v", states)
	}
	table.setFree(a)
	prev, next := table.FreeNeighbors(a)
	require.Equal(t, [2]Handle{None, b}, [2]Handle{prev, next}, "at the start of a region")
}

// TestRowOfNoneStaysZero applies every operation on neighbors and rings to None.
func TestRowOfNoneStaysZero(t *testing.T) {
	table := NewTable()
	h := table.Add(1<<20, 4096)
	require.False(t, table.Unlink(None))
	table.Retire(None)
	require.Equal(t, h, table.Join(None, h, None))
	tail := table.Split(h, 256)
	require.Equal(t, h, table.Join(None, h, tail))
	require.False(t, table.IsFree(None))
	require.Zero(t, table.Rows[None].Size)
	require.Equal(t, noRing[0].link, table.Rows[None].link)
	require.Equal(t, 1, table.Len())
}

func TestRingKeepsOrder(t *testing.T) {
	table := NewTable()
	ring := table.Anchor()
	require.Equal(t, ring, table.After(ring))
	a, b, c := table.Add(1<<20, 256), table.Add(2<<20, 256), table.Add(3<<20, 256)
	require.Equal(t, 3, table.Len(), "an anchor is no chunk")
	table.Link(a, ring)
	table.Link(b, ring)
	table.Link(c, table.Before(ring))
	var got []Handle
	for h := table.After(ring); h != ring; h = table.After(h) {
		got = append(got, h)
		require.Equal(t, h, table.After(table.Before(h)))
	}
	require.Equal(t, []Handle{b, a, c}, got)
	require.False(t, table.Unlink(a))
	require.False(t, table.Unlink(b))
	require.True(t, table.Unlink(c), "the last one")
	require.Equal(t, ring, table.After(ring))
	require.Equal(t, ring, table.Before(ring))
}

func TestRequestedSizeFollowsFromSlack(t *testing.T) {
	for _, size := range []device.Size{256, 1 << 20, 1 << 32, 1 << 60} {
		for _, requested := range []device.Size{1, 255, 256, size - 1<<32 + 1, size - 1<<32 + 2, size - 1, size} {
			if requested > size {
				continue
			}
			table := NewTable()
			h := table.Add(1<<20, size)
			setLive(&table, h, requested, Label{}, None)
			require.False(t, table.IsFree(h))
			require.Equal(t, requested, table.Requested(h), "of %d", uint64(size))
			require.Equal(t, size-requested >= 1<<32-1, table.wide.cells != nil, "the column exists only where it is needed")
			table.setFree(h)
			require.True(t, table.IsFree(h))
		}
	}
}

func TestLabelsTakeNoMemoryUntilThereIsOne(t *testing.T) {
	table := NewTable()
	a := table.Add(1<<20, 256)
	setLive(&table, a, 1, Label{}, None)
	require.Nil(t, table.labels.cells)
	without := table.Bytes()
	b := table.Add(2<<20, 256)
	setLive(&table, b, 1, Label{Tag: 7, Stream: 3}, None)
	require.Greater(t, table.Bytes(), without)
	require.Equal(t, Label{}, table.LabelOf(a))
	require.Equal(t, Label{Tag: 7, Stream: 3}, table.LabelOf(b))
	table.setFree(b)
	setLive(&table, b, 1, Label{}, None)
	require.Equal(t, Label{}, table.LabelOf(b), "a label does not outlive its block")
}

func TestUnsetColumnValuesAreZero(t *testing.T) {
	var c Column[uint32]
	require.Zero(t, c.Get(5))
	c.Set(3, 0, 10)
	require.Zero(t, c.Bytes())
	c.Set(3, 9, 10)
	require.EqualValues(t, 9, c.Get(3))
	require.Zero(t, c.Get(4))
	require.GreaterOrEqual(t, c.Bytes(), device.Size(40))
	c.Set(3, 0, 10)
	require.Zero(t, c.Get(3))
}

func TestPadLeadsToTheNextMultiple(t *testing.T) {
	for _, c := range []struct {
		at          device.Addr
		align, want device.Size
	}{
		{256, 0, 0}, {256, 1, 0}, {256, 256, 0}, {256, 512, 256}, {512, 512, 0}, {513, 512, 511}, {1, 1 << 63, 1<<63 - 1},
	} {
		require.Equal(t, c.want, Pad(c.at, c.align), "%+v", c)
	}
}

// firstFit is the simplest strategy over tiles: it searches a slice of the free chunks.
type firstFit struct {
	View
	core Core
	free []Handle
}

func newFirstFit(t *testing.T, src device.Source, p regions.Policy) *firstFit {
	t.Helper()
	require.NoError(t, p.Check("first"))
	f := &firstFit{}
	f.View = f.core.Init("first", src, p, promise.Set{}, f)
	return f
}

func (f *firstFit) Insert(h Handle) { f.free = append(f.free, h) }

func (f *firstFit) Remove(h Handle) {
	for i, g := range f.free {
		if g == h {
			f.free = append(f.free[:i], f.free[i+1:]...)
			return
		}
	}
	panic("first: not in the index")
}

func (f *firstFit) Largest() (n device.Size) {
	for _, h := range f.free {
		n = max(n, f.core.Rows[h].Size)
	}
	return n
}

func (f *firstFit) Bytes() device.Size { return device.Size(cap(f.free)) * 4 }

func (f *firstFit) All(yield func(Handle) bool) {
	for _, h := range f.free {
		if !yield(h) {
			return
		}
	}
}

func (f *firstFit) Show(Handle) (class int32, owner uint8) { return alloc.NoClass, 0 }

func (f *firstFit) Check(int) error { return nil }

func (f *firstFit) Alloc(r alloc.Request) (alloc.Block, error) {
	if !f.core.Accepts(&r) {
		return alloc.Block{}, f.core.Refuse(&r)
	}
	n := f.core.Round(r.Size)
	h := None
	for _, g := range f.free {
		if f.core.Serves(g, n, r.Align) {
			f.Remove(g)
			h = g
			break
		}
	}
	if h == None {
		var err error
		if h, err = f.core.Grow(&r, n); err != nil {
			return alloc.Block{}, err
		}
	}
	if f.core.Fills(h) {
		f.core.Occupy(h)
	}
	if pad := Pad(f.core.Rows[h].Addr, r.Align); pad > 0 {
		rest := f.core.Split(h, pad)
		f.Insert(h)
		h = rest
	}
	if f.core.Rows[h].Size > n {
		f.Insert(f.core.Split(h, n))
	}
	return f.core.Grant(h, &r), nil
}

func (f *firstFit) Free(at device.Addr) error {
	prev, h, next, err := f.core.Release(at)
	if err != nil {
		return err
	}
	if next != None {
		f.Remove(next)
	}
	if prev != None {
		f.Remove(prev)
	}
	h = f.core.Join(prev, h, next)
	if f.core.Fills(h) && f.core.Vacate(h) {
		return nil
	}
	f.Insert(h)
	return nil
}

// TestCoreKeepsItsInvariants makes random calls of a strategy with every policy, and checks it
// after every call.
func TestCoreKeepsItsInvariants(t *testing.T) {
	for _, p := range []regions.Policy{
		{Kind: regions.Whole, Limit: 64 * device.KiB},
		{Kind: regions.Fixed, Release: true},
		{Kind: regions.Request, Release: true, Keep: 8 * device.KiB},
		{Kind: regions.Doubling},
	} {
		p.Region, p.Quantum = 4*device.KiB, 256
		gpu, err := sim.New(sim.Config{Capacity: 64 * device.KiB, Align: 256})
		require.NoError(t, err)
		f := newFirstFit(t, gpu, p)
		rng := rand.New(rand.NewPCG(1, 1))
		var blocks []alloc.Block
		for range 3000 {
			if k := len(blocks); k > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(k)
				require.NoError(t, f.Free(blocks[i].Addr))
				require.ErrorIs(t, f.Free(blocks[i].Addr), alloc.ErrInvalidFree)
				blocks[i], blocks = blocks[k-1], blocks[:k-1]
			} else if b, err := f.Alloc(alloc.Request{Size: 1 + device.Size(rng.IntN(6000)), Align: 1 << rng.IntN(12),
				Tag: 1}); err == nil {
				blocks = append(blocks, b)
			} else {
				require.ErrorIs(t, err, alloc.ErrOutOfMemory)
			}
			require.NoError(t, f.View.Check())
		}
		for _, b := range blocks {
			require.NoError(t, f.Free(b.Addr))
		}
		if p.Release {
			require.LessOrEqual(t, f.Stats().Reserved, p.Keep)
		}
		_, err = f.Trim()
		require.NoError(t, err)
		require.Zero(t, f.Stats().Reserved)
		require.NoError(t, f.View.Check())
		require.NoError(t, f.Close())
		require.ErrorIs(t, f.Free(1), alloc.ErrClosed)
	}
}

// TestCheckNamesTheBrokenInvariant breaks each invariant in turn.
func TestCheckNamesTheBrokenInvariant(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(*firstFit, Handle)
		want   string
	}{
		"size":      {func(f *firstFit, h Handle) { f.core.Rows[h].Size += 256 }, "K1"},
		"link":      {func(f *firstFit, h Handle) { f.core.Rows[f.core.Rows[h].Next].Prev = None }, "K1"},
		"unmerged":  {func(f *firstFit, h Handle) { f.core.setFree(h) }, "K2"},
		"requested": {func(f *firstFit, h Handle) { f.core.Rows[h].back = uint32(f.core.Rows[h].Size) }, "K3"},
		"index":     {func(f *firstFit, h Handle) { *f.core.live.Of(f.core.Rows[h].Addr) = None }, "K4"},
		"row lost":  {func(f *firstFit, _ Handle) { f.core.extend() }, "K5"},
		"spares":    {func(f *firstFit, _ Handle) { f.core.spares++; f.core.extend() }, "K5"},
		"empty":     {func(f *firstFit, _ Handle) { f.core.pool.Vacated(1) }, "K6"},
		"counters":  {func(f *firstFit, _ Handle) { f.core.Stats.Live++ }, "K7"},
	} {
		gpu, err := sim.New(sim.Config{})
		require.NoError(t, err)
		f := newFirstFit(t, gpu, regions.Policy{Kind: regions.Fixed, Region: 4096, Quantum: 256})
		b, err := f.Alloc(alloc.Request{Size: 1000})
		require.NoError(t, err)
		require.NoError(t, f.View.Check())
		h := f.core.find(b.Addr)
		c.damage(f, h)
		require.ErrorContains(t, f.View.Check(), "first: invariant "+c.want, name)
	}
}
