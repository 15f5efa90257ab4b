package cells_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// stack is a parent that gives pieces of one class from address 4096 up, each again in the
// order in which they came back.
type stack struct {
	size  device.Size
	most  uint32 // pieces it has
	more  uint32 // pieces it has when it may ask for more
	given uint32
	back  []uint32
}

// Take implements [cells.Parent].
func (s *stack) Take(_ int, _ int32, more bool) (cells.Piece, bool) {
	n := s.given
	switch {
	case len(s.back) > 0:
		n = s.back[len(s.back)-1]
		s.back = s.back[:len(s.back)-1]
	case n < s.most || more && n < s.more:
		s.given++
	default:
		return cells.Piece{}, false
	}
	return cells.Piece{Addr: 4096 + device.Addr(n)*device.Addr(s.size), Handle: n}, true
}

// Give implements [cells.Parent].
func (s *stack) Give(_ int, p cells.Piece) { s.back = append(s.back, p.Handle) }

// bench is cells over a stack.
type bench struct {
	*cells.Engine
	parent *stack
}

// newBench returns cells of one class of 256 bytes, four to a slab, unless c says
// otherwise.
func newBench(t *testing.T, c cells.Config) *bench {
	t.Helper()
	b := &bench{parent: &stack{size: 1024, most: 1 << 20, more: 1 << 20}}
	c.Quantum = 256
	if c.Classes == nil {
		c.Classes = []cells.Class{{Slot: 256, Slab: 1024, Align: 1024}}
	}
	b.parent.size = c.Classes[0].Slab
	c.Segments = max(c.Segments, 1)
	var err error
	b.Engine, err = cells.New(b.parent, c)
	require.NoError(t, err)
	return b
}

// grab takes n slots of class 0 and returns their addresses.
func (b *bench) grab(t *testing.T, n, segment int) (all []device.Addr) {
	t.Helper()
	for range n {
		p, ok := b.Grab(0, segment, &alloc.Request{Size: 1}, true)
		require.True(t, ok)
		all = append(all, p)
	}
	require.NoError(t, b.Check())
	return all
}

// back returns slots.
func (b *bench) back(t *testing.T, all ...device.Addr) {
	t.Helper()
	for _, p := range all {
		b.free(t, p)
	}
	require.NoError(t, b.Check())
}

// free returns a slot.
func (b *bench) free(t *testing.T, p device.Addr) {
	t.Helper()
	requested, granted, ok := b.Return(p)
	require.True(t, ok)
	require.Equal(t, device.Size(1), requested)
	require.Equal(t, b.Slot(0), granted)
}

// slabsOf returns the slabs that slots lie in, in the order in which the parent gave them.
func (b *bench) slabsOf(all []device.Addr) (slabs []int32) {
	for _, p := range all {
		slabs = append(slabs, int32(p.Sub(4096)/b.parent.size))
	}
	return slabs
}

// TestSelectionDecidesWhichSlabServes makes three slabs with one, two and three free slots,
// the last of which got a slot back first.
func TestSelectionDecidesWhichSlabServes(t *testing.T) {
	for selection, want := range map[string]int32{
		cells.Fullest: 0, cells.Emptiest: 2, cells.Lifo: 1, cells.Fifo: 2, cells.Lowest: 0,
	} {
		b := newBench(t, cells.Config{Selection: selection})
		all := b.grab(t, 12, 0)
		b.back(t, all[8], all[9], all[10]) // of slab 2
		b.back(t, all[1])                  // of slab 0
		b.back(t, all[5], all[4])          // of slab 1
		next := b.grab(t, 1, 0)
		require.Equal(t, []int32{want}, b.slabsOf(next), selection)
	}
}

func TestPartialSlabsServeBeforeEmptyOnes(t *testing.T) {
	for _, selection := range []string{cells.Fullest, cells.Emptiest, cells.Lifo, cells.Fifo, cells.Lowest} {
		b := newBench(t, cells.Config{Selection: selection, EmptySlabs: 1})
		all := b.grab(t, 8, 0)
		b.back(t, all[4])
		b.back(t, all[:4]...)
		require.Equal(t, []int32{1}, b.slabsOf(b.grab(t, 1, 0)), selection)
	}
}

func TestEmptySlabsBeyondTheWatermarkGoBack(t *testing.T) {
	for keep := range 3 {
		b := newBench(t, cells.Config{EmptySlabs: keep})
		b.back(t, b.grab(t, 12, 0)...)
		require.Equal(t, keep, b.Slabs())
		require.Len(t, b.parent.back, 3-keep)
		require.Equal(t, keep, b.Shed())
		require.Zero(t, b.Slabs())
		require.NoError(t, b.Check())
	}
}

// TestStealingComesAfterAttaching has a parent with one piece, and one more if it may ask
// for memory.
func TestStealingComesAfterAttaching(t *testing.T) {
	for _, steal := range []bool{false, true} {
		b := newBench(t, cells.Config{Segments: 2, Steal: steal})
		b.parent.most, b.parent.more = 2, 3
		b.grab(t, 1, 0)
		require.Equal(t, []int32{1}, b.slabsOf(b.grab(t, 1, 1)), "an unattached piece is taken before a slot of "+
			"another segment")
		b.grab(t, 3, 0)
		got := b.grab(t, 4, 0)
		if steal {
			require.Equal(t, []int32{1, 1, 1, 2}, b.slabsOf(got), "another segment's slots are taken before memory is asked for")
		} else {
			require.Equal(t, []int32{2, 2, 2, 2}, b.slabsOf(got))
		}
	}
}

func TestEmptySlabChangesSegment(t *testing.T) {
	b := newBench(t, cells.Config{Segments: 3, Steal: true, EmptySlabs: 1})
	b.parent.most, b.parent.more = 1, 1
	b.back(t, b.grab(t, 1, 2)...)
	require.Equal(t, []int32{0, 0, 0, 0}, b.slabsOf(b.grab(t, 4, 1)))
	_, ok := b.Grab(0, 2, &alloc.Request{Size: 1}, true)
	require.False(t, ok)
}

func TestSegmentsByStreamOrInTurn(t *testing.T) {
	b := newBench(t, cells.Config{Segments: 3})
	for stream, want := range map[device.Stream]int{0: 0, 1: 1, 2: 2, 3: 0, 1<<64 - 1: 0} {
		require.Equal(t, want, b.Segment(stream))
	}
	b = newBench(t, cells.Config{Segments: 3, RoundRobin: true})
	for i := range 7 {
		require.Equal(t, i%3, b.Segment(99))
	}
}

// TestMagazinesTakeAndGiveBack follows two rounds a magazine, and one magazine in the depot.
func TestMagazinesTakeAndGiveBack(t *testing.T) {
	b := newBench(t, cells.Config{Rounds: 2, Depot: 1, Interval: 1000})
	all := b.grab(t, 8, 0)
	b.back(t, all...)
	require.Equal(t, device.Size(6*256), b.CachedBytes(), "loaded, the one before, the depot; two went to their slab")
	require.Equal(t, device.Size(2*256), b.FreeBytes())
	again := b.grab(t, 6, 0)
	require.Zero(t, b.CachedBytes())
	require.Equal(t, []device.Addr{all[5], all[4], all[3], all[2], all[1], all[0]}, again,
		"the last that came back goes first")
	b.back(t, again...)
	require.True(t, b.Drain())
	require.False(t, b.Drain())
	require.Zero(t, b.CachedBytes())
	require.Zero(t, b.Slabs())
	require.NoError(t, b.Check())
}

// TestDepotGivesBackWhatItDidWithout is the working set rule: what the depot had all through
// an interval goes back at its end.
func TestDepotGivesBackWhatItDidWithout(t *testing.T) {
	b := newBench(t, cells.Config{Rounds: 2, Depot: 10, Interval: 100})
	all := b.grab(t, 40, 0)
	b.back(t, all...)
	require.Equal(t, device.Size(2*256*12), b.CachedBytes(), "ten in the depot and two in the rack, the rest in slabs")
	spin := func(calls int) {
		for range calls / 2 {
			b.back(t, b.grab(t, 1, 0)...)
		}
	}
	spin(20)
	require.Equal(t, device.Size(2*256*12), b.CachedBytes(), "the interval in which they came ends")
	spin(100)
	require.Equal(t, device.Size(2*256*2), b.CachedBytes(), "they were not needed through a whole one")
}

func TestSlabsOfManySlotsServeThemAll(t *testing.T) {
	for _, slots := range []device.Size{1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096} {
		for _, selection := range []string{cells.Fullest, cells.Emptiest, cells.Lowest} {
			b := newBench(t, cells.Config{
				Selection: selection, Classes: []cells.Class{{Slot: 256, Slab: 256*slots + 128, Align: 128}},
			})
			all := b.grab(t, int(slots), 0)
			require.Equal(t, 1, b.Slabs())
			for i, c := range all {
				require.Equal(t, device.Addr(4096+256*i), c, "lowest first")
			}
			b.grab(t, 1, 0)
			require.Equal(t, 2, b.Slabs())
			for i := range all { // every seventh, until all are back
				c := all[i*7%len(all)]
				if len(all)%7 == 0 {
					c = all[i]
				}
				b.free(t, c)
			}
			require.NoError(t, b.Check())
			require.Equal(t, 1, b.Slabs())
		}
	}
}

func TestWalkOfASlab(t *testing.T) {
	b := newBench(t, cells.Config{Rounds: 1, Interval: 10, Classes: []cells.Class{{Slot: 256, Slab: 1124, Align: 4}}})
	all := b.grab(t, 3, 0)
	b.back(t, all[1], all[2], b.grab(t, 1, 0)[0])
	var text string
	b.WalkSlab(0, 4096, func(c alloc.Chunk) bool {
		text += fmt.Sprintln(c.Addr, c.Size, c.State, c.Class)
		return true
	})
	require.Equal(t, "0x1000 256B live 0\n0x1100 256B cached 0\n0x1200 256B cached 0\n0x1300 256B free 0\n0x1400 100B "+
		"slack -1\n", text)
}

// TestOnlyLiveSlotsCanBeReturned tries every address in and around two slabs with free slots,
// slots in magazines, and slots that do not fill the slab.
func TestOnlyLiveSlotsCanBeReturned(t *testing.T) {
	for _, rounds := range []int{0, 2} {
		for _, slots := range []device.Size{3, 5, 70} {
			b := newBench(t, cells.Config{
				Rounds: rounds, Interval: 1000, Classes: []cells.Class{{Slot: 768, Slab: slots*768 + 100, Align: 4}},
			})
			all := b.grab(t, int(slots)+2, 0)
			b.back(t, all[1], all[2], all[slots])
			live := map[device.Addr]bool{}
			for _, p := range all {
				live[p] = true
			}
			delete(live, all[1])
			delete(live, all[2])
			delete(live, all[slots])
			for p := device.Addr(0); p < 4096+device.Addr(3*slots*768); p++ {
				if _, _, ok := b.Return(p); ok != live[p] {
					t.Fatalf("%v is live: %v, was returned: %v", p, live[p], ok)
				}
			}
			require.NoError(t, b.Check())
		}
	}
}

// TestSlotsKeepWhatWasAsked has requests with a stream or a label, and slacks of which the
// column has no room for.
func TestSlotsKeepWhatWasAsked(t *testing.T) {
	const slot = 128 * device.KiB
	b := newBench(t, cells.Config{Classes: []cells.Class{{Slot: slot, Slab: 8 * slot, Align: slot}}})
	asked := []alloc.Request{
		{Size: slot}, {Size: 1}, {Size: slot - 65533}, {Size: slot - 65534}, {Size: slot - 65535}, {Size: slot - 65536},
		{Size: slot, Stream: 1}, {Size: 5, Tag: 1 << 63},
	}
	var all []device.Addr
	for _, r := range asked {
		p, ok := b.Grab(0, 0, &r, true)
		require.True(t, ok)
		all = append(all, p)
	}
	require.NoError(t, b.Check())
	i := 0
	b.WalkSlab(0, 4096, func(c alloc.Chunk) bool {
		require.Equal(t, alloc.Chunk{
			Region: 4096, Addr: all[i], Size: slot, Requested: asked[i].Size, State: alloc.Live, Stream: asked[i].Stream,
			Tag: asked[i].Tag,
		}, c)
		i++
		return true
	})
	for i, p := range all {
		requested, granted, ok := b.Return(p)
		require.True(t, ok)
		require.Equal(t, asked[i].Size, requested)
		require.Equal(t, slot, granted)
		require.NoError(t, b.Check())
	}
}

func TestClassesOfSizes(t *testing.T) {
	b := newBench(t, cells.Config{Classes: []cells.Class{
		{Slot: 256, Slab: 4096, Align: 4096}, {Slot: 768, Slab: 4096, Align: 4096}, {Slot: 2048, Slab: 4096, Align: 4096},
	}})
	for _, c := range []struct {
		size, align device.Size
		class       int
		ok          bool
	}{
		{0, 0, 0, false}, {1, 0, 0, true}, {256, 0, 0, true}, {257, 0, 1, true}, {768, 256, 1, true}, {769, 0, 2, true},
		{2048, 2048, 2, true}, {2049, 0, 0, false}, {1 << 63, 0, 0, false}, {1, 512, 2, true}, {257, 512, 2, true},
		{1, 4096, 3, false},
	} {
		class, ok := b.ClassFor(c.size, c.align)
		require.Equal(t, c.ok, ok, c)
		if ok {
			require.Equal(t, c.class, class, c)
		}
	}
}

func TestCellsRefuseWhatTheyCannotKeep(t *testing.T) {
	good := cells.Config{Quantum: 256, Segments: 1, Classes: []cells.Class{{Slot: 256, Slab: 1024, Align: 256}}}
	for want, spoil := range map[string]func(*cells.Config){
		"slab: quantum 3: want a power of two":     func(c *cells.Config) { c.Quantum = 3 },
		"slab: classes: 0 of them: want 1 to 4096": func(c *cells.Config) { c.Classes = nil },
		"slab: segments 0: want 1 to 4096":         func(c *cells.Config) { c.Segments = 0 },
		"slab: segments 4097: want 1 to 4096":      func(c *cells.Config) { c.Segments = 4097 },
		"slab: class of 100 bytes: want ascending multiples of 256": func(c *cells.Config) {
			c.Classes = []cells.Class{{Slot: 100, Slab: 1024}}
		},
		"slab: class of 256 bytes: want ascending multiples of 256": func(c *cells.Config) {
			c.Classes = append(c.Classes, c.Classes[0])
		},
		"slab: class of 256 bytes: want 1 to 4096 slots in 255 bytes": func(c *cells.Config) {
			c.Classes = []cells.Class{{Slot: 256, Slab: 255}}
		},
		"slab: class of 256 bytes: want 1 to 4096 slots in 1048832 bytes": func(c *cells.Config) {
			c.Classes = []cells.Class{{Slot: 256, Slab: 4097 * 256}}
		},
		`slab: selection "best": want "fullest", "emptiest", "lifo", "fifo" or "lowest"`: func(c *cells.Config) {
			c.Selection = "best"
		},
	} {
		c := good
		spoil(&c)
		_, err := cells.New(&stack{}, c)
		require.EqualError(t, err, want)
	}
	_, err := cells.New(&stack{}, good)
	require.NoError(t, err)
}
