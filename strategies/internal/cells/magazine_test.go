package cells

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// quarry is a parent of slabs of 1 KiB that takes none back.
type quarry struct{ given uint32 }

// Take implements [Parent].
func (s *quarry) Take(int, int32, bool) (Piece, bool) {
	s.given++
	return Piece{Addr: device.Addr(s.given) * 1024, Handle: s.given}, true
}

// Give implements [Parent].
func (*quarry) Give(int, Piece) {}

// TestDepotsPassSlotsOn frees six slots of one segment, which fills its magazines and the
// depot, and takes one in the other: with a depot for both, that has then a magazine of the
// first one's slots. Nobody's magazines may have slots of another class, nor of another
// segment if nothing passes on.
func TestDepotsPassSlotsOn(t *testing.T) {
	for _, c := range []struct {
		name   string
		depot  int
		steal  bool
		passes bool
	}{
		{"one depot", 1, true, true},
		{"no depot", 0, true, false},
		{"each its own", 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := New(new(quarry), Config{
				Quantum: 256, Classes: []Class{{Slot: 256, Slab: 1024, Align: 1024}, {Slot: 512, Slab: 1024, Align: 1024}},
				Segments: 2, Steal: c.steal, Rounds: 2, Depot: c.depot, Interval: 1 << 20,
			})
			require.NoError(t, err)
			grab := func(class, segment int) device.Addr {
				p, ok := a.Grab(class, segment, &alloc.Request{Size: 256}, true)
				require.True(t, ok)
				return p
			}
			free := func(all ...device.Addr) {
				for _, p := range all {
					_, _, ok := a.Return(p)
					require.True(t, ok)
				}
			}
			free(grab(0, 0), grab(0, 0), grab(0, 0), grab(0, 0), grab(0, 0), grab(0, 0))
			free(grab(0, 1))
			require.NoError(t, a.Check())

			free(grab(1, 1))
			require.NoError(t, a.Check())

			first := func(rack int) *cell { return &a.cached.cells[a.cached.racks[rack].loaded*2] }
			own := first(2) // of the first class in the second segment
			require.Equal(t, c.passes, a.backs[own.slab].segment == 0)
			for name, other := range map[string]struct {
				rack   int
				broken bool
			}{"segment": {0, !c.passes}, "class": {3, true}} {
				with := first(other.rack)
				*own, *with = *with, *own
				if err := a.Check(); other.broken {
					require.ErrorContains(t, err, "slab: invariant C7 ", name)
				} else {
					require.NoError(t, err, name)
				}
				*own, *with = *with, *own
			}
		})
	}
}
