package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
)

// sheet is memory from toyBase on.
type sheet []byte

func (m sheet) held(a device.Addr, n device.Size) bool {
	return a >= toyBase && a.Add(n) <= device.Addr(toyBase).Add(device.Size(len(m)))
}

func (m sheet) Fill(a device.Addr, n device.Size, pattern uint32) error {
	if !m.held(a, n) {
		return device.ErrUnmapped
	}
	for ; n > 0; a, n = a+1, n-1 {
		m[a-toyBase] = byte(pattern >> (8 * (a & 3)))
	}
	return nil
}

func (m sheet) Compare(a device.Addr, n device.Size, pattern uint32) (device.Addr, bool, error) {
	if !m.held(a, n) {
		return 0, false, device.ErrUnmapped
	}
	for ; n > 0; a, n = a+1, n-1 {
		if m[a-toyBase] != byte(pattern>>(8*(a&3))) {
			return a, false, nil
		}
	}
	return 0, true, nil
}

// forgetful is a toy that one time grants a cell although it is live.
type forgetful struct {
	*toy
	armed bool
}

func (f *forgetful) Alloc(r alloc.Request) (alloc.Block, error) {
	if f.armed {
		f.armed = false
		return alloc.Block{Addr: toyBase + 100, Size: 256}, nil
	}
	return f.toy.Alloc(r)
}

func newFilled(t *testing.T, s alloc.Strategy, memory device.Contents) alloc.Strategy {
	t.Helper()
	f, err := wrap.Filled(s, memory)
	require.NoError(t, err)
	return f
}

func TestFilledKeepsTheContentsOfBlocks(t *testing.T) {
	memory := make(sheet, 4*256)
	s := newFilled(t, newToy(4), memory)
	var all []device.Addr
	for range 4 {
		b, err := s.Alloc(alloc.Request{Size: 200})
		require.NoError(t, err)
		all = append(all, b.Addr)
	}
	_, err := s.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	for i := range memory[256:] {
		require.NotEqual(t, memory[:4], memory[256+i&^255:][:4], "each block has a pattern of its own")
	}
	for _, a := range []device.Addr{all[2], all[0], all[3], all[1]} {
		require.NoError(t, s.Check())
		require.ErrorIs(t, s.Free(a+1), alloc.ErrInvalidFree)
		require.NoError(t, s.Free(a))
		require.ErrorIs(t, s.Free(a), alloc.ErrInvalidFree)
	}
	clear(memory) // free memory is anybody's
	b, err := s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	require.NoError(t, s.Check())
	require.Equal(t, all[0], b.Addr)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

func TestOverlappingBlocksAreReportedAsCorruption(t *testing.T) {
	inner := &forgetful{toy: newToy(4)}
	s := newFilled(t, inner, make(sheet, 4*256))
	a, err := s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	inner.armed = true
	_, err = s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	for _, err := range []error{s.Check(), s.Free(a.Addr), s.Close()} {
		var c *wrap.Corruption
		require.ErrorAs(t, err, &c)
		require.Equal(t, wrap.Corruption{Block: a, Serial: 1, At: toyBase + 100}, *c)
		require.ErrorContains(t, err, "grant 1, 256 bytes at 0x1000: overwritten at 0x1064")
	}
	require.NoError(t, s.Close(), "what was found was said")
}

func TestBlockOutsideMemoryIsNotGranted(t *testing.T) {
	inner := newToy(4)
	s := newFilled(t, inner, make(sheet, 2*256))
	for range 2 {
		_, err := s.Alloc(alloc.Request{Size: 1})
		require.NoError(t, err)
	}
	for range 2 {
		_, err := s.Alloc(alloc.Request{Size: 1})
		var c *wrap.Corruption
		require.ErrorAs(t, err, &c)
		require.ErrorIs(t, err, device.ErrUnmapped)
		require.Equal(t, alloc.Block{Addr: toyBase + 512, Size: 256}, c.Block)
	}
	require.Equal(t, 2, inner.stats.Live, "the block went back")
	require.NoError(t, s.Check())
}

func TestUnmappedLiveMemoryIsReportedAsCorruption(t *testing.T) {
	memory := make(sheet, 4*256)
	taken := &shrinking{sheet: memory}
	s := newFilled(t, newToy(4), taken)
	a, err := s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	taken.sheet = nil
	err = s.Free(a.Addr)
	require.ErrorIs(t, err, device.ErrUnmapped)
	require.ErrorContains(t, err, "grant 1, 256 bytes at 0x1000: device: invalid call: no memory is mapped there")
	_, err = wrap.Filled(newToy(1), nil)
	require.ErrorContains(t, err, "without memory")
}

// shrinking is memory that can be taken away.
type shrinking struct{ sheet }
