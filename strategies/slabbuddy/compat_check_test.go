package slabbuddy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// shelf is a device without end: regions lie 2 MiB and more apart, none is taken twice.
type shelf struct{ next device.Addr }

func (s *shelf) Reserve(size, _ device.Size) (device.Region, error) {
	s.next = device.AlignUp(s.next+1, 2*device.MiB)
	r := device.Region{Addr: s.next, Size: size}
	s.next = r.End()
	return r, nil
}

func (s *shelf) Release(device.Addr) error { return nil }

// TestCheckNamesWhatIsBroken spoils one thing at a time. R5 is what
// the tests of the parts spoil.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	for want, spoil := range map[string]func(*Parts){
		"R1": func(a *Parts) { a.cfg.BlockBytes *= 8 },
		"R2": func(a *Parts) { _, _ = a.regions.Reserve(1, 0, int32(OwnerSlab)) },
		"R3": func(a *Parts) { a.direct.Add(1, front.LiveBlock{}) },
		"R6": func(a *Parts) { a.stats.Requested++ },
	} {
		a, err := NewParts(new(shelf), Config{Compat: CompatXDL})
		require.NoError(t, err)
		for _, size := range []device.Size{1, 20000, device.GiB} {
			_, err := a.Alloc(alloc.Request{Size: size})
			require.NoError(t, err)
		}
		require.NoError(t, a.Check())
		spoil(a)
		require.ErrorContains(t, a.Check(), "slabbuddy: invariant "+want+" ")
	}
}
