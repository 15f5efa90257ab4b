package mapped_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/mapped"
	"github.com/vramyard/vramyard/kit/index"
)

const page = 16

// three returns mappings of pages 2, 3 and 4, and 6, of which the second spans two pages.
func three(t *testing.T) *mapped.List {
	t.Helper()
	l := &mapped.List{}
	for slot, m := range []struct {
		at   device.Addr
		size device.Size
	}{{2 * page, page}, {3 * page, 2 * page}, {6 * page, page}} {
		p, err := l.Room(m.at, m.size)
		require.NoError(t, err)
		l.Insert(p, index.AddrEntry[mapped.Mapping]{Addr: m.at, Value: mapped.Mapping{Size: m.size, Slot: int32(slot)}})
	}
	return l
}

func TestRoomReturnsUnmappedRanges(t *testing.T) {
	l := three(t)
	var none mapped.List
	_, err := none.Room(page, page)
	require.NoError(t, err)
	for at := range device.Addr(8) {
		for n := device.Size(1); n <= 3; n++ {
			free := true
			for i := at; i < at.Add(n); i++ {
				free = free && (i < 2 || i == 5 || i > 6)
			}
			if _, err := l.Room(at*page, n*page); free {
				require.NoError(t, err, "%d pages at page %d", n, at)
			} else {
				require.ErrorIs(t, err, device.ErrMapped, "%d pages at page %d", n, at)
			}
		}
	}
}

func TestFillWantsWholeMappings(t *testing.T) {
	l := three(t)
	for _, c := range []struct {
		at   device.Addr
		size device.Size
		want error
	}{
		{2, 1, nil}, {2, 3, nil}, {3, 2, nil}, {6, 1, nil},
		{2, 2, device.ErrInvalid}, {3, 1, device.ErrInvalid}, {4, 1, device.ErrInvalid}, {2, 0, device.ErrInvalid},
		{0, 1, device.ErrUnmapped}, {5, 1, device.ErrUnmapped}, {2, 4, device.ErrUnmapped}, {2, 5, device.ErrUnmapped},
		{6, 2, device.ErrUnmapped}, {7, 1, device.ErrUnmapped},
	} {
		p, err := l.Fill(c.at*page, c.size*page, page)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, "%d pages at page %d", c.size, c.at)
			continue
		}
		require.NoError(t, err, "%d pages at page %d", c.size, c.at)
		require.Equal(t, c.at*page, l.Entry(p).Addr)
	}
	for _, odd := range []struct {
		at   device.Addr
		size device.Size
	}{{2*page + 1, page}, {2 * page, page + 1}} {
		_, err := l.Fill(odd.at, odd.size, page)
		require.ErrorIs(t, err, device.ErrGranularity)
	}
}

func TestAllowStopsAtTheEnd(t *testing.T) {
	l := three(t)
	p, err := l.Fill(2*page, 3*page, page)
	require.NoError(t, err)
	p = l.Allow(p, 5*page, device.AccessRead)
	require.Equal(t, device.Addr(6*page), l.Entry(p).Addr)
	var access []device.Access
	for e := range l.All {
		access = append(access, e.Value.Access)
	}
	require.Equal(t, []device.Access{device.AccessRead, device.AccessRead, device.AccessNone}, access)
}

func TestWithin(t *testing.T) {
	r := device.Region{Addr: 100, Size: 10}
	require.True(t, mapped.Within(r, 100, 10))
	require.True(t, mapped.Within(r, 109, 1))
	require.False(t, mapped.Within(r, 100, 11))
	require.False(t, mapped.Within(r, 109, 2))
	require.False(t, mapped.Within(r, 110, 1))
	require.False(t, mapped.Within(r, 105, ^device.Size(0)))
}
