package bfc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// bump is a device without end that grants every region above the last.
type bump struct{ next device.Addr }

func (b *bump) Reserve(size, _ device.Size) (device.Region, error) {
	r := device.Region{Addr: b.next, Size: size}
	b.next = r.End()
	return r, nil
}

func (b *bump) Release(device.Addr) error { return nil }

// newOverBump returns an allocator over a bump device.
func newOverBump(t *testing.T, c Config) *Allocator {
	t.Helper()
	a, err := New(&bump{next: 1 << 20}, c)
	require.NoError(t, err)
	return a
}

// populated returns an allocator with a live block of 1000 bytes, a hole of 512, a live
// block and the rest, which are handles 0 to 3, and one retired handle.
func populated(t *testing.T, c Config) *Allocator {
	t.Helper()
	c.Limit = device.MiB
	a := newOverBump(t, c)
	var blocks []alloc.Block
	for _, n := range []device.Size{1000, 512, 256, 256} {
		b, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		blocks = append(blocks, b)
	}
	require.NoError(t, a.Free(blocks[1].Addr))
	require.NoError(t, a.Free(blocks[3].Addr))
	require.NoError(t, a.Check())
	return a
}

// TestCheckNamesWhatIsBroken plants one fault at a time.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	rows := func(a *Allocator) []chunk { return a.chunks.rows }
	for name, c := range map[string]struct {
		config Config
		spoil  func(*Allocator)
		want   string
	}{
		"region size":       {spoil: func(a *Allocator) { a.regions.rows[0].size++ }, want: "B1"},
		"reservation":       {spoil: func(a *Allocator) { a.regions.rows[0].more = []device.Addr{1} }, want: "B1"},
		"chunk size":        {spoil: func(a *Allocator) { rows(a)[0].size += 256 }, want: "B2"},
		"prev":              {spoil: func(a *Allocator) { rows(a)[2].prev = 0 }, want: "B2"},
		"region number":     {spoil: func(a *Allocator) { rows(a)[2].tag = makeTag(live, 0, 1) }, want: "B2"},
		"last":              {spoil: func(a *Allocator) { a.regions.rows[0].last = 0 }, want: "B2"},
		"retired in region": {spoil: func(a *Allocator) { rows(a)[1].tag = makeTag(retired, 0, 0) }, want: "B2"},
		"not in its bin":    {spoil: func(a *Allocator) { a.unshelve(1) }, want: "B3"},
		"in another bin":    {spoil: func(a *Allocator) { a.unshelve(1); a.bins[0].Insert(256, 0, 1) }, want: "B3"},
		"live in a bin": {spoil: func(a *Allocator) { a.bins[0].Insert(rows(a)[0].size, rows(a)[0].addr, 0) },
			want: "B3"},
		"unknown handle":    {spoil: func(a *Allocator) { a.bins[0].Insert(256, 0, 99) }, want: "B3"},
		"unmerged":          {spoil: func(a *Allocator) { a.shelve(a.splitForTest(1)) }, want: "B4"},
		"requested":         {spoil: func(a *Allocator) { rows(a)[0].slack = 1024 }, want: "B5"},
		"waste":             {spoil: func(a *Allocator) { rows(a)[0].slack = 1000 }, want: "B6"},
		"reserved":          {spoil: func(a *Allocator) { a.front.Stats.Reserved++ }, want: "B7"},
		"forgotten":         {spoil: func(a *Allocator) { a.front.Stats.Forgotten++ }, want: "B7"},
		"allocated":         {spoil: func(a *Allocator) { a.front.Stats.Allocated-- }, want: "B7"},
		"requested sum":     {spoil: func(a *Allocator) { a.front.Stats.Requested++ }, want: "B7"},
		"live in region":    {spoil: func(a *Allocator) { a.regions.rows[0].live++ }, want: "B7"},
		"empty":             {spoil: func(a *Allocator) { a.regions.empty = 1 }, want: "B7"},
		"rows":              {spoil: func(a *Allocator) { a.regions.spare = append(a.regions.spare, 7) }, want: "B7"},
		"not in the index":  {spoil: func(a *Allocator) { a.live.Delete(rows(a)[0].addr, a.chunks.addrOf) }, want: "B8"},
		"too much in index": {spoil: func(a *Allocator) { a.live.Put(rows(a)[1].addr, 2, a.chunks.addrOf) }, want: "B8"},
		"lost handle":       {spoil: func(a *Allocator) { a.chunks.spare, a.chunks.spares = none, 0 }, want: "B9"},
		"owner":             {spoil: func(a *Allocator) { rows(a)[0].tag = makeTag(live, OwnerLower, 0) }, want: "B10"},
		"owner order": {config: Config{Variant: V2026, Spatial: true},
			spoil: func(a *Allocator) { rows(a)[0].tag = makeTag(live, OwnerUpper, 0) }, want: "B10"},
		"no owner": {config: Config{Variant: V2026, Spatial: true},
			spoil: func(a *Allocator) { rows(a)[0].tag = makeTag(live, OwnerNone, 0) }, want: "B10"},
		"queue without timing": {spoil: func(a *Allocator) { a.queue.entries = []entry{{h: 1}} }, want: "B11"},
		"stamp of a live chunk": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.chunks.freedAt[0] = 1 }, want: "B11"},
		"stamp from the future": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.chunks.freedAt[1] = 99 }, want: "B11"},
		"oldest": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.queue.oldest = 99 }, want: "B11"},
		"queue of nothing": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.queue.entries[0].h = 99 }, want: "B11"},
		"unsafe and not queued": {config: Config{Timing: true, Mended: true},
			spoil: func(a *Allocator) { a.queue.entries, a.queue.n = nil, 0; clear(a.chunks.marks) }, want: "B11"},
		"queue length": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.queue.n++ }, want: "B11"},
		"mark": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.chunks.marks[0].entries++ }, want: "B11"},
		"granted and no suspect": {config: Config{Timing: true},
			spoil: func(a *Allocator) { a.queue.entries[0].h = 0 }, want: "B11"},
	} {
		t.Run(name, func(t *testing.T) {
			a := populated(t, c.config)
			c.spoil(a)
			require.ErrorContains(t, a.Check(), "bfc: invariant "+c.want+" (")
		})
	}
}

// splitForTest halves a free chunk and returns the second half, out of its bin.
func (a *Allocator) splitForTest(h handle) handle {
	a.unshelve(h)
	tail := a.split(h, a.chunks.rows[h].size/2)
	a.shelve(h)
	return tail
}

func TestBrokenBinPanicsWithTheInvariant(t *testing.T) {
	a := populated(t, Config{})
	a.bins[OwnerNone] = index.NewSizeMap(unit)
	require.PanicsWithValue(t,
		"bfc: invariant B3 (each free chunk in exactly one bin): the chunk at "+a.chunks.rows[1].addr.String()+" is in none",
		func() { a.Free(a.chunks.rows[0].addr) }) // it must panic
}
