package index_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// model is a list beside a sorted slice of its addresses. The value of an address is three
// times the address, and the bounds are on the lowest byte of the address.
type model struct {
	list  index.AddrList[uint64]
	addrs []device.Addr
}

func entry(a device.Addr) index.AddrEntry[uint64] {
	return index.AddrEntry[uint64]{Addr: a, Value: 3 * uint64(a)}
}

func weight(a device.Addr) device.Size { return device.Size(a & 0xff) }

func (m *model) insert(t *testing.T, a device.Addr) {
	t.Helper()
	i, had := slices.BinarySearch(m.addrs, a)
	p, found := m.list.Search(a)
	require.Equal(t, had, found)
	if had {
		require.Equal(t, entry(a), m.list.Entry(p))
		return
	}
	m.addrs = slices.Insert(m.addrs, i, a)
	p = m.list.Insert(p, entry(a))
	m.list.Raise(p.Leaf, weight(a))
	require.Equal(t, entry(a), m.list.Entry(p))
}

func (m *model) remove(t *testing.T, i int) {
	t.Helper()
	p, ok := m.list.Search(m.addrs[i])
	require.True(t, ok)
	p = m.list.Delete(p)
	m.addrs = slices.Delete(m.addrs, i, i+1)
	require.Equal(t, i < len(m.addrs), m.list.Holds(p))
	if i < len(m.addrs) {
		require.Equal(t, m.addrs[i], m.list.Entry(p).Addr, "the next one")
	} else {
		require.Equal(t, m.list.End(), p)
	}
}

// check compares everything.
func (m *model) check(t *testing.T) {
	t.Helper()
	require.Equal(t, len(m.addrs), m.list.Len())
	i := 0
	for e := range m.list.All {
		require.Equal(t, entry(m.addrs[i]), e)
		i++
	}
	require.Equal(t, len(m.addrs), i)
	for i, a := range m.addrs {
		p, ok := m.list.Search(a)
		require.True(t, ok)
		require.Equal(t, p, m.list.Nth(i))
		below, ok := m.list.Below(p)
		require.Equal(t, i > 0, ok)
		if ok {
			require.Equal(t, entry(m.addrs[i-1]), below)
		}
		m.checkPlaces(t, i, p)
	}
	for i := len(m.addrs) - 1; i >= 0; i -= 3 {
		require.Equal(t, m.addrs[i], m.list.Entry(m.list.Nth(i)).Addr)
	}
	m.checkBounds(t)
}

// checkPlaces compares what is around the entry with i entries below it, at p.
func (m *model) checkPlaces(t *testing.T, i int, p index.AddrPos) {
	t.Helper()
	a, next := m.addrs[i], m.list.Next(p)
	floor, ok := m.list.Floor(a)
	require.True(t, ok && floor == p && m.list.Above(p) == p)
	require.Equal(t, i+1 < len(m.addrs), m.list.Holds(next))
	if m.list.Holds(next) {
		require.Equal(t, m.addrs[i+1], m.list.Entry(next).Addr)
	}
	if a == ^device.Addr(0) || m.list.Holds(next) && m.addrs[i+1] == a+1 {
		return // there is nothing between
	}
	between, found := m.list.Search(a + 1)
	floor, ok = m.list.Floor(a + 1)
	require.True(t, !found && ok && floor == p)
	require.Equal(t, m.list.Holds(next), m.list.Holds(m.list.Above(between)))
	if m.list.Holds(next) {
		require.Equal(t, next, m.list.Above(between))
	}
}

// checkBounds compares a search by bounds with a look at everything.
func (m *model) checkBounds(t *testing.T) {
	t.Helper()
	for _, n := range []device.Size{1, 100, 200, 240, 255, 256} {
		var up, down []int
		l := &m.list
		for j := l.NextLeaf(0, n); j < l.Leaves(); j = l.NextLeaf(j+1, n) {
			up = append(up, j)
		}
		for j := l.PrevLeaf(l.Leaves()-1, n); j >= 0; j = l.PrevLeaf(j-1, n) {
			down = append(down, j)
		}
		slices.Reverse(down)
		require.Equal(t, up, down)
		for j := range l.Leaves() {
			most := device.Size(0)
			for _, e := range l.Leaf(j) {
				most = max(most, weight(e.Addr))
			}
			if most >= n {
				require.Contains(t, up, j)
			} else if slices.Contains(up, j) {
				l.Lower(j, most)
			}
		}
	}
}

// TestAgreesWithSlice lets a list grow and shrink through several thousand entries, with
// addresses that come at random, upwards, and downwards.
func TestAgreesWithSlice(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var m model
		m.check(t)
		next := device.Addr(1 << 40)
		for i := range 30_000 {
			if i%3_000 == 0 {
				m.check(t)
			}
			grow := 8
			if i/6_000%2 == 1 {
				grow = 3
			}
			// What Nth remembers must outlast every change, so it is asked for a place between any two.
			if n := len(m.addrs); n > 0 {
				nth := rng.IntN(n)
				require.Equal(t, m.addrs[nth], m.list.Entry(m.list.Nth(nth)).Addr)
			}
			if n := len(m.addrs); n > 0 && rng.IntN(10) >= grow {
				m.remove(t, []int{rng.IntN(n), 0, n - 1}[(i/500+int(seed))%3])
				continue
			}
			a := device.Addr(rng.Uint64N(1 << 40))
			switch seed % 3 {
			case 1:
				next += device.Addr(1 + rng.Uint64N(1000))
				a = next
			case 2:
				next -= device.Addr(1 + rng.Uint64N(1000))
				a = next
			}
			m.insert(t, a)
		}
		for len(m.addrs) > 0 {
			m.remove(t, rng.IntN(len(m.addrs)))
		}
		m.check(t)
		m.insert(t, 5)
		m.check(t)
	}
}

// TestSetReplacesAnEntry moves every entry up by one.
func TestSetReplacesAnEntry(t *testing.T) {
	var m model
	for i := range device.Addr(1000) {
		m.insert(t, 4*i)
	}
	for i := range m.addrs {
		m.addrs[i]++
		p := m.list.Nth(i)
		m.list.Set(p, entry(m.addrs[i]))
		m.list.Raise(p.Leaf, weight(m.addrs[i]))
	}
	m.check(t)
}

func TestClearKeepsTheMemory(t *testing.T) {
	var m model
	m.list.Clear()
	grow := func() {
		for i := range device.Addr(5000) {
			m.insert(t, i*7919%5000)
		}
	}
	grow()
	var before device.Size
	for i := range 4 {
		if i == 1 { // the leaf that stays is another than the one that was first
			before = m.list.Bytes(8)
		}
		m.list.Clear()
		m.addrs = m.addrs[:0]
		_, ok := m.list.Floor(7)
		require.False(t, ok)
		m.check(t)
		grow()
		m.check(t)
		require.True(t, i == 0 || before == m.list.Bytes(8))
	}
}

func TestEndsOfTheAddressSpace(t *testing.T) {
	var m model
	for i := range device.Addr(1000) {
		m.insert(t, i)
		m.insert(t, ^i)
	}
	m.insert(t, ^device.Addr(0))
	m.check(t)
}

func TestMemoryFollowsTheEntries(t *testing.T) {
	var l index.AddrList[uint64]
	require.Zero(t, l.Bytes(8))
	l.Insert(l.End(), entry(1))
	require.LessOrEqual(t, l.Bytes(8), device.Size(256))
	const n = 100_000
	for a := range device.Addr(n) {
		l.Insert(l.End(), entry(a+2))
	}
	require.Less(t, l.Bytes(8), device.Size(20*n), "leaves that fill upwards are full")
}

// FuzzList reads calls of two bytes each.
func FuzzList(f *testing.F) {
	f.Add([]byte("\x01\x02\x07\x80\x31\x02\x02\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 200 {
			return
		}
		var m model
		for ; len(data) >= 2; data = data[2:] {
			for n := range 1 + int(data[0]>>2) {
				switch k := len(m.addrs); {
				case data[0]&1 == 1 || k == 0:
					m.insert(t, device.Addr(int(data[1])*64+n*int(data[0]&2*50+1)))
				default:
					m.remove(t, (int(data[1])*7+n)%k)
				}
			}
		}
		m.check(t)
	})
}
