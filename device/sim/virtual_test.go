package sim_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

const page = 4 * device.KiB // of the cards of this file

// card is a device with a byte-for-byte model of its virtual memory.
type card struct {
	t       testing.TB
	d       *sim.Device
	rng     *rand.Rand
	ranges  []device.Region
	regions []device.Region
	handles []*chip                     // not released
	maps    map[device.Addr]*mapped     // by the first address of each page
	starts  map[device.Addr]device.Size // mappings
}

// chip is physical memory of the model.
type chip struct {
	handle device.Handle
	bytes  []byte
	known  []bool
	maps   int
	named  bool
}

// mapped is a page of a range or region.
type mapped struct {
	chip   *chip
	offset int
	access device.Access
}

func newCard(t testing.TB, draws rand.Source, c sim.Config) *card {
	return &card{
		t: t, d: newDevice(t, c), rng: rand.New(draws),
		maps: map[device.Addr]*mapped{}, starts: map[device.Addr]device.Size{},
	}
}

// step makes one random call, legal or illegal, and compares its result with the model's.
func (c *card) step() {
	switch c.rng.IntN(12) {
	case 0:
		c.reserve()
	case 1:
		c.release()
	case 2:
		c.reserveRange()
	case 3:
		c.releaseRange()
	case 4, 5:
		c.createHandle()
	case 6:
		c.releaseHandle()
	case 7, 8, 9:
		c.mapSome()
	case 10:
		c.setAccess()
	case 11:
		c.unmap()
	}
}

// free reports whether no byte of r is held.
func (c *card) free(r device.Region) bool {
	for _, list := range [][]device.Region{c.ranges, c.regions} {
		for _, o := range list {
			if r.Addr < o.End() && o.Addr < r.End() {
				return false
			}
		}
	}
	return true
}

func (c *card) reserve() {
	r, err := c.d.Reserve(device.Size(1+c.rng.IntN(int(3*page))), 0)
	if err != nil {
		require.ErrorIs(c.t, err, device.ErrOutOfMemory)
		return
	}
	require.True(c.t, c.free(r))
	c.regions = append(c.regions, r)
	k := newChip(r.Size)
	for a := r.Addr; a < r.End(); a = a.Add(page) {
		c.maps[a] = &mapped{k, int(a.Sub(r.Addr)), device.AccessReadWrite}
	}
}

func newChip(size device.Size) *chip {
	return &chip{bytes: make([]byte, size), known: make([]bool, size), named: true}
}

func (c *card) release() {
	if len(c.regions) == 0 {
		return
	}
	i := c.rng.IntN(len(c.regions))
	r := c.regions[i]
	require.NoError(c.t, c.d.Release(r.Addr))
	require.ErrorIs(c.t, c.d.Release(r.Addr), device.ErrInvalid)
	c.regions = append(c.regions[:i], c.regions[i+1:]...)
	for a := r.Addr; a < r.End(); a = a.Add(page) {
		delete(c.maps, a)
	}
}

func (c *card) reserveRange() {
	size := device.Size(c.rng.IntN(8)) * page
	at := device.Addr(0)
	if c.rng.IntN(2) == 0 {
		at = sim.Base.Add(device.Size(c.rng.IntN(64)) * page)
	}
	r, err := c.d.ReserveRange(size, 0, at)
	switch {
	case size == 0:
		require.ErrorIs(c.t, err, device.ErrInvalid)
	case at != 0 && !c.free(device.Region{Addr: at, Size: size}):
		require.ErrorIs(c.t, err, device.ErrOutOfMemory)
	default:
		require.NoError(c.t, err)
		require.True(c.t, at == 0 || r.Addr == at)
		require.Equal(c.t, size, r.Size)
		require.True(c.t, c.free(r) && r.Addr.IsAligned(page))
		if at == 0 { // the lowest free addresses
			for a := sim.Base; a < r.Addr; a = a.Add(page) {
				require.False(c.t, c.free(device.Region{Addr: a, Size: size}))
			}
		}
		c.ranges = append(c.ranges, r)
	}
}

// mappedIn reports whether any of size bytes at a is mapped, and whether all are.
func (c *card) mappedIn(a device.Addr, size device.Size) (some, all bool) {
	all = true
	for n := device.Size(0); n < size; n += page {
		m := c.maps[a.Add(n)]
		some, all = some || m != nil, all && m != nil
	}
	return some, all
}

func (c *card) releaseRange() {
	if len(c.ranges) == 0 {
		return
	}
	i := c.rng.IntN(len(c.ranges))
	r := c.ranges[i]
	require.ErrorIs(c.t, c.d.Release(r.Addr), device.ErrInvalid, "a range is no region")
	err := c.d.ReleaseRange(r.Addr)
	if some, _ := c.mappedIn(r.Addr, r.Size); some {
		require.ErrorIs(c.t, err, device.ErrMapped)
		return
	}
	require.NoError(c.t, err)
	require.ErrorIs(c.t, c.d.ReleaseRange(r.Addr), device.ErrInvalid)
	c.ranges = append(c.ranges[:i], c.ranges[i+1:]...)
}

func (c *card) createHandle() {
	size := device.Size(1+c.rng.IntN(4)) * page
	free := c.d.Usage().Free()
	h, err := c.d.CreateHandle(size)
	if size > free {
		require.ErrorIs(c.t, err, device.ErrOutOfMemory)
		return
	}
	require.NoError(c.t, err)
	for _, k := range c.handles {
		require.NotEqual(c.t, k.handle, h)
	}
	k := newChip(size)
	k.handle = h
	c.handles = append(c.handles, k)
}

func (c *card) releaseHandle() {
	if len(c.handles) == 0 {
		return
	}
	i := c.rng.IntN(len(c.handles))
	k := c.handles[i]
	require.NoError(c.t, c.d.ReleaseHandle(k.handle))
	require.ErrorIs(c.t, c.d.ReleaseHandle(k.handle), device.ErrHandle)
	k.named = false
	c.handles = append(c.handles[:i], c.handles[i+1:]...)
}

func (c *card) mapSome() {
	if len(c.handles) == 0 || len(c.ranges) == 0 {
		return
	}
	k, r := c.handles[c.rng.IntN(len(c.handles))], c.ranges[c.rng.IntN(len(c.ranges))]
	a := r.Addr.Add(device.Size(c.rng.IntN(int(r.Size/page))) * page)
	size, offset := device.Size(c.rng.IntN(5))*page, device.Size(c.rng.IntN(3))*page
	err := c.d.Map(a, size, k.handle, offset)
	some, _ := c.mappedIn(a, size)
	switch {
	case size == 0, offset+size > device.Size(len(k.bytes)), a.Add(size) > r.End():
		require.ErrorIs(c.t, err, device.ErrInvalid)
		require.NotErrorIs(c.t, err, device.ErrMapped)
	case some:
		require.ErrorIs(c.t, err, device.ErrMapped)
	default:
		require.NoError(c.t, err)
		k.maps++
		c.starts[a] = size
		for n := device.Size(0); n < size; n += page {
			c.maps[a.Add(n)] = &mapped{chip: k, offset: int(offset + n)}
		}
		if c.rng.IntN(4) > 0 {
			require.NoError(c.t, c.d.SetAccess(a, size, device.AccessReadWrite))
			c.grant(a, size, device.AccessReadWrite)
		}
	}
}

// grant sets the access of pages.
func (c *card) grant(a device.Addr, size device.Size, access device.Access) {
	for n := device.Size(0); n < size; n += page {
		c.maps[a.Add(n)].access = access
	}
}

// some draws addresses of a range, often whole mappings, and returns the error that a call about
// them must return.
func (c *card) some() (a device.Addr, size device.Size, want error) {
	r := c.ranges[c.rng.IntN(len(c.ranges))]
	a = r.Addr.Add(device.Size(c.rng.IntN(int(r.Size/page))) * page)
	size = device.Size(1+c.rng.IntN(4)) * page
	if n, ok := c.starts[a]; ok && c.rng.IntN(2) == 0 {
		size = n + c.starts[a.Add(n)]
	}
	cover := func(at device.Addr) bool { return c.starts[at] == 0 && c.maps[at] != nil }
	isRegion := func(at device.Addr) bool {
		for _, r := range c.regions {
			if r.Contains(at) {
				return true
			}
		}
		return false
	}
	for at := a; at < a.Add(size); {
		switch n := c.starts[at]; {
		case isRegion(at), c.maps[at] == nil:
			return a, size, device.ErrUnmapped
		case cover(at), n > a.Add(size).Sub(at):
			return a, size, device.ErrInvalid
		default:
			at = at.Add(n)
		}
	}
	return a, size, nil
}

// requireError compares the error of a call with the expected one, by identity.
func (c *card) requireError(err, want error) {
	if want == nil {
		require.NoError(c.t, err)
		return
	}
	require.Equal(c.t, want, err)
}

func (c *card) setAccess() {
	if len(c.ranges) == 0 {
		return
	}
	a, size, want := c.some()
	access := device.Access(c.rng.IntN(3))
	c.requireError(c.d.SetAccess(a, size, access), want)
	if want == nil {
		c.grant(a, size, access)
	}
}

func (c *card) unmap() {
	if len(c.ranges) == 0 {
		return
	}
	a, size, want := c.some()
	c.requireError(c.d.Unmap(a, size), want)
	for n := device.Size(0); want == nil && n < size; n += page {
		if c.starts[a.Add(n)] != 0 {
			c.maps[a.Add(n)].chip.maps--
		}
		delete(c.starts, a.Add(n))
		delete(c.maps, a.Add(n))
	}
}

// check compares the account, the mappings and the figures with the model.
func (c *card) check() {
	u := c.d.Usage()
	var held, charged, space, mapped device.Size
	for _, r := range c.regions {
		held, charged = held+r.Size, charged+device.AlignUp(r.Size, c.d.Config().Charge)
	}
	chips := map[*chip]bool{}
	for _, k := range c.handles {
		chips[k] = true
	}
	for a := range c.starts {
		chips[c.maps[a].chip] = true
	}
	for k := range chips {
		held, charged = held+device.Size(len(k.bytes)), charged+device.Size(len(k.bytes))
	}
	for _, r := range c.ranges {
		space += r.Size
	}
	for _, n := range c.starts {
		mapped += n
	}
	require.Equal(c.t, []device.Size{held, charged, space, mapped}, []device.Size{u.Held, u.Charged, u.Space, u.Mapped})
	require.Equal(c.t, []int{len(c.regions), len(c.ranges), len(c.handles)}, []int{u.Regions, u.Ranges, u.Handles})
	if phys := c.d.Physical(); c.d.Config().Memory != sim.Counted {
		require.Equal(c.t, charged, phys.Used)
		require.Equal(c.t, c.d.Config().Capacity, phys.Used+phys.Free)
	}
	n, last := 0, device.Addr(0)
	for m := range c.d.Mappings {
		require.Equal(c.t, c.starts[m.Addr], m.Size)
		require.Greater(c.t, m.Addr, last)
		p := c.maps[m.Addr]
		require.Equal(c.t, []any{p.offset, p.access}, []any{int(m.Offset), m.Access})
		if p.chip.named {
			require.Equal(c.t, p.chip.handle, m.Handle)
		}
		n, last = n+1, m.Addr
	}
	require.Len(c.t, c.starts, n)
}

// TestVirtualMemoryAgreesWithAModel makes random calls, legal and illegal, on devices of every
// level of detail, and compares every result and the account.
func TestVirtualMemoryAgreesWithAModel(t *testing.T) {
	for seed := range uint64(30) {
		c := newCard(t, rand.NewPCG(seed, 6), sim.Config{
			Capacity: 64 * page, Align: page, Granularity: page, Ordinal: uint8(seed),
			Memory: []sim.Memory{sim.Counted, sim.Placed, sim.Filled}[seed%3], Charge: 1024 << (seed % 3),
		})
		for range 500 {
			c.step()
			if c.d.Config().Memory == sim.Filled {
				c.touch()
			}
			c.check()
		}
	}
}

// FuzzVirtualMemory draws the calls from bytes.
func FuzzVirtualMemory(f *testing.F) {
	f.Add([]byte("\x02\x04\x07\x07\x0a\x0b\x00\x01\x03\x06"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 600 {
			return
		}
		draws := &bytesDrawn{left: data}
		c := newCard(t, draws, sim.Config{Capacity: 64 * page, Align: page, Granularity: page, Memory: sim.Filled})
		for len(draws.left) > 0 {
			c.step()
			c.touch()
		}
		c.check()
	})
}

// bytesDrawn makes each number from one byte and the number of draws.
type bytesDrawn struct {
	left  []byte
	drawn uint64
}

func (b *bytesDrawn) Uint64() uint64 {
	b.drawn++
	n := b.drawn * 0x9e3779b97f4a7c15 >> 8
	if len(b.left) > 0 {
		n ^= uint64(b.left[0]) << 56
		b.left = b.left[1:]
	}
	return n
}

func TestMisuseOfVirtualMemoryIsRefused(t *testing.T) {
	d := newDevice(t, sim.Config{Capacity: device.GiB, FailAbove: 64 * device.MiB})
	g := d.Granularity()
	r, err := d.ReserveRange(4*g, 0, 0)
	require.NoError(t, err)
	h, err := d.CreateHandle(2 * g)
	require.NoError(t, err)
	before := d.Usage()
	reserve := func(size, align device.Size, at device.Addr) error {
		_, err := d.ReserveRange(size, align, at)
		return err
	}
	create := func(size device.Size) error {
		_, err := d.CreateHandle(size)
		return err
	}
	for what, c := range map[string]struct{ got, want error }{
		"no range":               {reserve(0, 0, 0), device.ErrInvalid},
		"odd alignment":          {reserve(g, 3, 0), device.ErrInvalid},
		"address not aligned":    {reserve(g, 4*g, sim.Base.Add(9*g)), device.ErrInvalid},
		"half a page of range":   {reserve(g/2, 0, 0), device.ErrGranularity},
		"half a page above":      {reserve(g, 0, sim.Base.Add(g/2)), device.ErrGranularity},
		"range too large":        {reserve(1<<57, 0, 0), device.ErrOutOfMemory},
		"below all addresses":    {reserve(g, 0, sim.Base-device.Addr(g)), device.ErrOutOfMemory},
		"above all addresses":    {reserve(2*g, 0, sim.End-device.Addr(g)), device.ErrOutOfMemory},
		"address taken":          {reserve(g, 0, r.Addr.Add(g)), device.ErrOutOfMemory},
		"no handle":              {create(0), device.ErrInvalid},
		"half a page":            {create(g / 2), device.ErrGranularity},
		"above what is refused":  {create(64*device.MiB + g), device.ErrOutOfMemory},
		"no range there":         {d.ReleaseRange(r.Addr.Add(g)), device.ErrInvalid},
		"handle never made":      {d.ReleaseHandle(h + 1), device.ErrHandle},
		"zero":                   {d.ReleaseHandle(0), device.ErrHandle},
		"map nothing":            {d.Map(r.Addr, 0, h, 0), device.ErrInvalid},
		"map half a page":        {d.Map(r.Addr, g/2, h, 0), device.ErrGranularity},
		"map between pages":      {d.Map(r.Addr.Add(g/2), g, h, 0), device.ErrGranularity},
		"map from between pages": {d.Map(r.Addr, g, h, g/2), device.ErrGranularity},
		"map no handle":          {d.Map(r.Addr, g, h+1, 0), device.ErrHandle},
		"map beyond the handle":  {d.Map(r.Addr, 2*g, h, g), device.ErrInvalid},
		"map far beyond it":      {d.Map(r.Addr, 2*g, h, -g), device.ErrInvalid},
		"map beyond the range":   {d.Map(r.Addr.Add(3*g), 2*g, h, 0), device.ErrInvalid},
		"map below the range":    {d.Map(r.Addr-device.Addr(g), g, h, 0), device.ErrInvalid},
		"map far away":           {d.Map(0, g, h, 0), device.ErrInvalid},
		"access to nothing":      {d.SetAccess(r.Addr, 0, device.AccessRead), device.ErrInvalid},
		"access to half a page":  {d.SetAccess(r.Addr, g/2, device.AccessRead), device.ErrGranularity},
		"access to no memory":    {d.SetAccess(r.Addr, g, device.AccessRead), device.ErrUnmapped},
		"no such access":         {d.SetAccess(r.Addr, g, 9), device.ErrInvalid},
		"unmap nothing":          {d.Unmap(r.Addr, 0), device.ErrInvalid},
		"unmap no memory":        {d.Unmap(r.Addr, g), device.ErrUnmapped},
	} {
		require.Equal(t, c.want, c.got, what)
	}
	after := d.Usage()
	after.Calls, after.Time, after.Times = before.Calls, before.Time, before.Times
	require.Equal(t, before, after, "refused calls change nothing else")
	require.NoError(t, d.ReleaseHandle(h))
	require.Equal(t, device.ErrHandle, d.Map(r.Addr, g, h, 0), "released")
}

func TestHandlesOfOtherDevicesAreRefused(t *testing.T) {
	var handles []device.Handle
	for ordinal := range uint8(3) {
		d := newDevice(t, sim.Config{Ordinal: 255 - ordinal})
		h, err := d.CreateHandle(d.Granularity())
		require.NoError(t, err)
		for _, other := range handles {
			require.Equal(t, device.ErrHandle, d.ReleaseHandle(other))
		}
		handles = append(handles, h)
		require.NoError(t, d.ReleaseHandle(h))
		again, err := d.CreateHandle(d.Granularity())
		require.NoError(t, err)
		require.NotEqual(t, h, again)
		require.Equal(t, device.ErrHandle, d.ReleaseHandle(h), "released before")
	}
}

func TestMemoryStaysChargedWhileItIsMapped(t *testing.T) {
	d := newDevice(t, sim.Config{Capacity: 8 * device.MiB})
	g := d.Granularity()
	r, err := d.ReserveRange(100*g, 0, 0)
	require.NoError(t, err)
	h, err := d.CreateHandle(4 * g)
	require.NoError(t, err)
	for i := range device.Size(3) {
		require.NoError(t, d.Map(r.Addr.Add(10*i*g), 4*g, h, 0), "one memory at several addresses")
	}
	require.Equal(t, 12*g, d.Usage().Mapped)
	free, total, err := d.MemoryInfo()
	require.NoError(t, err)
	require.Equal(t, []device.Size{0, 8 * device.MiB}, []device.Size{free, total})
	require.NoError(t, d.ReleaseHandle(h))
	_, err = d.Reserve(1, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	for i := range device.Size(3) {
		require.Equal(t, 4*g, d.Usage().Held)
		require.Equal(t, device.ErrMapped, d.ReleaseRange(r.Addr))
		require.NoError(t, d.Unmap(r.Addr.Add(10*i*g), 4*g))
	}
	require.NoError(t, d.ReleaseRange(r.Addr))
	require.True(t, d.Usage().Empty())
	free, total, err = newDevice(t, sim.Config{}).MemoryInfo()
	require.NoError(t, err)
	require.Zero(t, free+total, "without a bound")
}

func TestHandlesDoNotOverflowTheAccount(t *testing.T) {
	d, err := sim.New(sim.Config{Memory: sim.Placed})
	require.NoError(t, err)
	const size = device.Size(sim.End - sim.Base)
	for range 1 << 7 {
		_, err := d.CreateHandle(size)
		require.NoError(t, err)
	}
	_, err = d.CreateHandle(d.Granularity())
	require.ErrorIs(t, err, device.ErrOutOfMemory, "256 of them would be no bytes at all")
	require.Equal(t, device.Size(1)<<63, d.Usage().Held)
	require.Equal(t, d.Usage().Held, d.Physical().Used)
}

// BenchmarkMapping maps pages in a range with other mappings, sets their access and unmaps them.
func BenchmarkMapping(b *testing.B) {
	for _, pages := range []device.Size{16, 4096} {
		b.Run(strconv.Itoa(int(pages)), func(b *testing.B) {
			d, err := sim.New(sim.Config{})
			if err != nil {
				b.Fatal(err)
			}
			g := d.Granularity()
			r, err := d.ReserveRange(pages*g, 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			h, err := d.CreateHandle(g)
			if err != nil {
				b.Fatal(err)
			}
			for i := device.Size(0); i < pages; i += 2 {
				if err := d.Map(r.Addr.Add(i*g), g, h, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := device.Size(1)
			for b.Loop() {
				at := r.Addr.Add(i * g)
				if d.Map(at, g, h, 0) != nil || d.SetAccess(at, g, device.AccessReadWrite) != nil || d.Unmap(at, g) != nil {
					b.Fatal("refused")
				}
				i = (i*5+2)%pages | 1
			}
		})
	}
}
