package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// at returns the byte of the model at an address, nil if there is none.
func (c *card) at(a device.Addr) (m *mapped, i int) {
	for _, r := range c.regions {
		if r.Contains(a) {
			start := c.maps[r.Addr]
			return start, int(a.Sub(r.Addr))
		}
	}
	first := device.AlignDown(a, page)
	if m = c.maps[first]; m == nil || m.offset+int(a-first) >= len(m.chip.bytes) {
		return nil, 0
	}
	return m, m.offset + int(a-first)
}

// usable returns how a call about n bytes at a must end.
func (c *card) usable(a device.Addr, n device.Size, access device.Access) (want error) {
	for i := range n {
		m, _ := c.at(a.Add(i))
		if m == nil {
			return device.ErrUnmapped
		}
		if m.access < access {
			want = device.ErrAccess
		}
	}
	return want
}

// touch fills or compares a random stretch of random memory.
func (c *card) touch() {
	held := append(append([]device.Region{}, c.regions...), c.ranges...)
	if len(held) == 0 {
		return
	}
	r := held[c.rng.IntN(len(held))]
	a := r.Addr.Add(device.Size(c.rng.IntN(int(r.Size))))
	n := device.Size(c.rng.IntN(int(2 * page)))
	if c.rng.IntN(2) == 0 {
		n = device.Size(c.rng.IntN(20))
	}
	pattern := []uint32{0, 0x01020304, 0x01020304, 0xdeadbeef}[c.rng.IntN(4)]
	if c.rng.IntN(2) == 0 {
		want := c.usable(a, n, device.AccessReadWrite)
		c.requireError(c.d.Fill(a, n, pattern), want)
		for i := device.Size(0); want == nil && i < n; i++ {
			m, at := c.at(a.Add(i))
			m.chip.bytes[at], m.chip.known[at] = patternByte(a.Add(i), pattern), true
		}
		return
	}
	want := c.usable(a, n, device.AccessRead)
	differs, same, err := c.d.Compare(a, n, pattern)
	c.requireError(err, want)
	if want != nil {
		require.False(c.t, same)
		return
	}
	for i := range n {
		m, at := c.at(a.Add(i))
		switch {
		case !same && a.Add(i) == differs:
			require.False(c.t, m.chip.known[at] && m.chip.bytes[at] == patternByte(differs, pattern))
			return
		case m.chip.known[at]:
			require.Equal(c.t, m.chip.bytes[at], patternByte(a.Add(i), pattern), "%v", a.Add(i))
		}
	}
	require.True(c.t, same)
}

// patternByte returns the byte at an address that is filled with a pattern.
func patternByte(a device.Addr, pattern uint32) byte { return byte(pattern >> (8 * (a & 3))) }

func filled(t *testing.T) *sim.Device {
	t.Helper()
	return newDevice(t, sim.Config{Memory: sim.Filled, Capacity: 80 * device.GiB})
}

func TestContentsAreSeenThroughEveryMapping(t *testing.T) {
	d := filled(t)
	g := d.Granularity()
	h, err := d.CreateHandle(2 * g)
	require.NoError(t, err)
	r, err := d.ReserveRange(4*g, 0, 0)
	require.NoError(t, err)
	low, high := r.Addr, r.Addr.Add(3*g)
	require.NoError(t, d.Map(low, 2*g, h, 0))
	require.NoError(t, d.Map(high, g, h, g))
	require.ErrorIs(t, d.Fill(low, 8, 1), device.ErrAccess)
	require.NoError(t, d.SetAccess(low, 2*g, device.AccessReadWrite))
	require.NoError(t, d.SetAccess(high, g, device.AccessRead))
	require.NoError(t, d.Fill(low.Add(g-3), 10, 0x01020304))
	require.ErrorIs(t, d.Fill(high, 8, 1), device.ErrAccess)
	_, same, err := d.Compare(high, 7, 0x01020304)
	require.NoError(t, err)
	require.True(t, same)
	differs, same, err := d.Compare(high, 8, 0x01020304)
	require.NoError(t, err)
	require.False(t, same)
	require.Equal(t, high+7, differs)
	require.ErrorIs(t, d.Fill(low.Add(2*g-1), 2, 0), device.ErrUnmapped)
	require.NoError(t, d.ReleaseHandle(h))
	_, same, err = d.Compare(high, 7, 0x01020304)
	require.NoError(t, err)
	require.True(t, same, "memory lives while it is mapped")
}

func TestNewMemoryHasNoOldContents(t *testing.T) {
	d := filled(t)
	for range 3 {
		r, err := d.Reserve(8*device.GiB, 0)
		require.NoError(t, err)
		for _, pattern := range []uint32{0, ^uint32(0), 0xabababab} {
			differs, same, err := d.Compare(r.Addr, r.Size, pattern)
			require.NoError(t, err)
			require.False(t, same)
			require.Less(t, differs, r.Addr+4)
		}
		require.NoError(t, d.Fill(r.Addr, r.Size, 0xabababab))
		_, same, err := d.Compare(r.Addr+1, r.Size-1, 0xabababab)
		require.NoError(t, err)
		require.True(t, same)
		require.NoError(t, d.Release(r.Addr))
	}
}

func TestContentsAreStoredOnlyAtLevelFilled(t *testing.T) {
	d := newDevice(t, sim.Config{Memory: sim.Placed})
	_, ok := device.ContentsOf(d)
	require.False(t, ok)
	r, err := d.Reserve(1, 0)
	require.NoError(t, err)
	require.ErrorIs(t, d.Fill(r.Addr, 1, 0), device.ErrUnsupported)
	_, ok = device.ContentsOf(filled(t))
	require.True(t, ok)
}

func TestPatternsLieByAddress(t *testing.T) {
	d := newDevice(t, sim.Config{Memory: sim.Filled, Align: 1, Round: 1})
	_, err := d.Reserve(3, 0)
	require.NoError(t, err)
	r, err := d.Reserve(8, 0)
	require.NoError(t, err)
	require.Equal(t, sim.Base+3, r.Addr, "a region that starts within a word")
	require.NoError(t, d.Fill(r.Addr, r.Size, 0x04030201))
	for i, pattern := range []uint32{0x04ffffff, 0xffffff01, 0xffff02ff, 0xff03ffff} {
		_, same, err := d.Compare(r.Addr.Add(device.Size(i)), 1, pattern)
		require.NoError(t, err)
		require.True(t, same, "byte %d", i)
	}
}
