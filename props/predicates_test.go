package props_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

const base device.Addr = 0x10000

// walkOf builds a walk over one region at base from sizes: free ones positive, live ones
// negative, asked for in full.
func walkOf(sizes ...int) (walk []alloc.Chunk) {
	at := base
	for i, n := range sizes {
		c := alloc.Chunk{Region: base, Addr: at, Size: device.Size(max(n, -n))}
		if n < 0 {
			c.State, c.Requested, c.Tag, c.Class = alloc.Live, c.Size, uint64(i+1), alloc.NoClass
		}
		walk = append(walk, c)
		at = c.End()
	}
	return walk
}

// with returns the walk with chunk i changed.
func with(walk []alloc.Chunk, i int, change func(*alloc.Chunk)) []alloc.Chunk {
	change(&walk[i])
	return walk
}

// requireBroken checks that err names the invariant and says what disagrees.
func requireBroken(t *testing.T, want props.Number, err error) {
	t.Helper()
	var v *props.Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, want, v.Number)
	require.NotEmpty(t, v.Detail)
	require.Contains(t, v.Error(), want.String())
}

func TestTiling(t *testing.T) {
	require.NoError(t, props.Tiling(nil))
	require.NoError(t, props.Tiling(walkOf(64, -64, 128)))
	for name, walk := range map[string][]alloc.Chunk{
		"gap":     with(walkOf(64, 64), 1, func(c *alloc.Chunk) { c.Addr += 64 }),
		"overlap": with(walkOf(64, 64), 1, func(c *alloc.Chunk) { c.Addr -= 1 }),
		"empty":   with(walkOf(64, 64), 1, func(c *alloc.Chunk) { c.Size = 0 }),
		"begins":  walkOf(64, 64)[1:],
		"wraps":   with(walkOf(64), 0, func(c *alloc.Chunk) { c.Size = ^device.Size(0) }),
	} {
		t.Run(name, func(t *testing.T) { requireBroken(t, props.ITiling, props.Tiling(walk)) })
	}
}

func TestRegions(t *testing.T) {
	walk := walkOf(64, -64, 128)
	second := with(walkOf(64), 0, func(c *alloc.Chunk) { c.Region, c.Addr = base+256, base+256 })
	both := append(append([]alloc.Chunk{}, second...), walk...) // in any order of regions
	held := []device.Region{{Addr: base, Size: 256}, {Addr: base + 256, Size: 64}}
	one := []device.Region{{Addr: base, Size: 320}}
	require.NoError(t, props.Regions(both, held, false))
	require.NoError(t, props.Regions(both, held, true))
	require.NoError(t, props.Regions(both, one, true))
	requireBroken(t, props.IRegions, props.Regions(both, one, false))
	requireBroken(t, props.IRegions, props.Regions(walk, held, false))
	requireBroken(t, props.IRegions, props.Regions(both, held[:1], false))
	requireBroken(t, props.IRegions, props.Regions(walk, nil, true))
	requireBroken(t, props.IRegions, props.Regions(walk[:2], held[:1], true))
}

func TestChunks(t *testing.T) {
	require.NoError(t, props.Chunks(walkOf(64, -64), 64, false))
	streamed := with(walkOf(64, -64), 0, func(c *alloc.Chunk) { c.Stream = 1 })
	require.NoError(t, props.Chunks(streamed, 64, true))
	requireBroken(t, props.IChunk, props.Chunks(inState(streamed, alloc.Cached), 64, true))
	for name, change := range map[string]func(*alloc.Chunk){
		"state":     func(c *alloc.Chunk) { c.State = 17 },
		"requested": func(c *alloc.Chunk) { c.Requested = 1 },
		"stream":    func(c *alloc.Chunk) { c.Stream = 1 },
		"unmapped":  func(c *alloc.Chunk) { c.State, c.Stream = alloc.Unmapped, 1 },
		"tag":       func(c *alloc.Chunk) { c.Tag = 1 },
		"too much":  func(c *alloc.Chunk) { c.State, c.Requested = alloc.Live, 65 },
		"quantum":   func(c *alloc.Chunk) { c.State, c.Addr = alloc.Live, c.Addr+1 },
	} {
		t.Run(name, func(t *testing.T) {
			requireBroken(t, props.IChunk, props.Chunks(with(walkOf(64, -64), 0, change), 64, false))
		})
	}
}

func TestCoalescing(t *testing.T) {
	neighbours := walkOf(64, 64, -64, 64, 64)
	requireBroken(t, props.ICoalescing, props.Coalescing(neighbours, promise.MergeAll))
	require.NoError(t, props.Coalescing(walkOf(64, -64, 64), promise.MergeAll))
	unsafe := with(walkOf(64, 64), 1, func(c *alloc.Chunk) { c.FreedAt = 3 })
	require.NoError(t, props.Coalescing(unsafe, promise.MergeSafe))
	requireBroken(t, props.ICoalescing, props.Coalescing(walkOf(64, 64), promise.MergeSafe))

	require.NoError(t, props.Coalescing(walkOf(-64, 64, 64, -64), promise.MergeBuddies), "touching but no buddies")
	requireBroken(t, props.ICoalescing, props.Coalescing(walkOf(-64, -64, 64, 64), promise.MergeBuddies))

	require.NoError(t, props.Coalescing(walkOf(128, 128), promise.MergeWithin(128)))
	requireBroken(t, props.ICoalescing, props.Coalescing(walkOf(128, 64, 64), promise.MergeWithin(128)))

	apart := with(walkOf(64, 64), 1, func(c *alloc.Chunk) { c.Region = c.Addr })
	require.NoError(t, props.Coalescing(apart, promise.MergeAll), "two regions that touch")
}

func TestClasses(t *testing.T) {
	bySize := func(c alloc.Chunk) int32 { return int32(c.Size / 64) }
	right := with(walkOf(64, -64), 0, func(c *alloc.Chunk) { c.Class = 1 })
	require.NoError(t, props.Classes(right, bySize))
	requireBroken(t, props.IClass, props.Classes(walkOf(64, -64), bySize))
}

func TestFreeList(t *testing.T) {
	walk := walkOf(64, -64, 128, -64, 192)
	search := []alloc.Chunk{walk[4], walk[0], walk[2]}
	require.NoError(t, props.FreeList(walk, search))
	requireBroken(t, props.IFreeList, props.FreeList(walk, search[:2]))
	requireBroken(t, props.IFreeList, props.FreeList(walk, append(search, walk[0])))
	requireBroken(t, props.IFreeList, props.FreeList(walk, append(search, walk[1])))
	search[0].Class = 3
	requireBroken(t, props.IFreeList, props.FreeList(walk, search))
}

func TestSearchOrder(t *testing.T) {
	walk := walkOf(128, -64, 64, -64, 128)
	require.NoError(t, props.SearchOrder([]alloc.Chunk{walk[2], walk[0], walk[4]}, promise.BySizeThenAddress))
	requireBroken(t, props.ISearchOrder, props.SearchOrder([]alloc.Chunk{walk[0], walk[2]}, promise.BySizeThenAddress))
	requireBroken(t, props.ISearchOrder, props.SearchOrder([]alloc.Chunk{walk[4], walk[0]}, promise.BySizeThenAddress))
	walk[2].Class = 1
	require.NoError(t, props.SearchOrder([]alloc.Chunk{walk[0], walk[2]}, promise.BySizeThenAddress), "two classes")
}

func TestHole(t *testing.T) {
	require.NoError(t, props.Hole(walkOf(64, -256, 128), 128))
	requireBroken(t, props.IHole, props.Hole(walkOf(64, -256, 128), 64))
	require.NoError(t, props.Hole(walkOf(-64), 0))
}

func TestContained(t *testing.T) {
	held := []device.Region{{Addr: base, Size: 128}, {Addr: base + 128, Size: 128}}
	require.NoError(t, props.Contained(alloc.Block{Addr: base + 64, Size: 64}, held, false))
	across := alloc.Block{Addr: base + 64, Size: 128}
	requireBroken(t, props.IContained, props.Contained(across, held, false))
	require.NoError(t, props.Contained(across, held, true))
	requireBroken(t, props.IContained, props.Contained(alloc.Block{Addr: base + 192, Size: 128}, held, true))
	requireBroken(t, props.IContained, props.Contained(alloc.Block{Addr: 64, Size: 64}, held, true))
}

func TestAligned(t *testing.T) {
	require.NoError(t, props.Aligned(alloc.Block{Addr: base}, alloc.Request{Align: 256}))
	require.NoError(t, props.Aligned(alloc.Block{Addr: base + 1}, alloc.Request{}))
	requireBroken(t, props.IAligned, props.Aligned(alloc.Block{Addr: base + 64}, alloc.Request{Align: 256}))
}

func TestGrantSize(t *testing.T) {
	most := func(alloc.Request) device.Size { return 128 }
	require.NoError(t, props.GrantSize(alloc.Block{Size: 128}, alloc.Request{Size: 100}, most))
	requireBroken(t, props.IGrant, props.GrantSize(alloc.Block{Size: 99}, alloc.Request{Size: 100}, most))
	requireBroken(t, props.IGrant, props.GrantSize(alloc.Block{Size: 129}, alloc.Request{Size: 100}, most))
	requireBroken(t, props.IGrant, props.GrantSize(alloc.Block{}, alloc.Request{}, nil))
}

func TestAccounting(t *testing.T) {
	walk := with(walkOf(64, -64, 128), 2, func(c *alloc.Chunk) { c.State = alloc.Pending })
	right := alloc.Stats{Live: 1, Requested: 64, Allocated: 64, Active: 192, Reserved: 256, Regions: 1}
	require.NoError(t, props.Accounting(walk, right))
	for name, change := range map[string]func(*alloc.Stats){
		"live":      func(s *alloc.Stats) { s.Live++ },
		"requested": func(s *alloc.Stats) { s.Requested-- },
		"allocated": func(s *alloc.Stats) { s.Allocated++ },
		"active":    func(s *alloc.Stats) { s.Active = 64 },
		"reserved":  func(s *alloc.Stats) { s.Reserved = 0 },
		"regions":   func(s *alloc.Stats) { s.Regions = 2 },
	} {
		wrong := right
		change(&wrong)
		requireBroken(t, props.IAccounting, props.Accounting(walk, wrong))
		_ = name
	}
}

func TestNesting(t *testing.T) {
	right := alloc.Stats{
		Requested: 1, Allocated: 2, Active: 3, Reserved: 4,
		PeakRequested: 1, PeakAllocated: 2, PeakActive: 3, PeakReserved: 4,
	}
	require.NoError(t, props.Nesting(right))
	for _, change := range []func(*alloc.Stats){
		func(s *alloc.Stats) { s.Requested, s.PeakRequested = 3, 3 },
		func(s *alloc.Stats) { s.Allocated, s.PeakAllocated = 4, 4 },
		func(s *alloc.Stats) { s.Active, s.PeakActive = 5, 5 },
		func(s *alloc.Stats) { s.PeakReserved = 3 },
		func(s *alloc.Stats) { s.PeakRequested = 0 },
	} {
		wrong := right
		change(&wrong)
		requireBroken(t, props.INesting, props.Nesting(wrong))
	}
}

func TestCountersAndDeviceAccount(t *testing.T) {
	s := alloc.Stats{Allocs: 3, Reserved: 64, Regions: 1, Reserves: 1, PeakReserved: 64}
	require.NoError(t, props.Counters(s, alloc.Stats{Allocs: 3}))
	requireBroken(t, props.ICounters, props.Counters(s, alloc.Stats{Allocs: 2}))
	u := device.Usage{Held: 64, PeakHeld: 64, Regions: 1, Calls: device.Calls{device.CallReserve: {Done: 1}}}
	require.NoError(t, props.DeviceAccount(s, u, false))
	u.Regions = 2
	require.NoError(t, props.DeviceAccount(s, u, true), "regions may be joined")
	requireBroken(t, props.IDeviceAccount, props.DeviceAccount(s, u, false))
	u.Held = 32
	requireBroken(t, props.IDeviceAccount, props.DeviceAccount(s, u, true))
	requireBroken(t, props.ILimit, props.Limit(alloc.Stats{Limit: 63, Reserved: 64}))
}

func TestSameLiveAndSameWalk(t *testing.T) {
	before := walkOf(64, -64, 128)
	merged := []alloc.Chunk{before[1]}
	require.NoError(t, props.SameLive(before, merged), "free chunks may change")
	requireBroken(t, props.IOutOfMemory, props.SameLive(before, nil))
	requireBroken(t, props.IOutOfMemory, props.SameLive(nil, before))
	requireBroken(t, props.IOutOfMemory,
		props.SameLive(before, with(walkOf(64, -64), 1, func(c *alloc.Chunk) { c.Requested = 1 })))

	require.NoError(t, props.SameWalk(before, walkOf(64, -64, 128), alloc.Stats{}, alloc.Stats{}))
	requireBroken(t, props.IRefusal, props.SameWalk(before, merged, alloc.Stats{}, alloc.Stats{}))
	requireBroken(t, props.IRefusal, props.SameWalk(before, before[:2], alloc.Stats{}, alloc.Stats{}))
	requireBroken(t, props.IRefusal, props.SameWalk(before[:2], before, alloc.Stats{}, alloc.Stats{}))
	requireBroken(t, props.IRefusal, props.SameWalk(before, before, alloc.Stats{}, alloc.Stats{OOMs: 1}))
}

func TestTrimmedDrainedHolding(t *testing.T) {
	was, is := alloc.Stats{Reserved: 256, Regions: 2}, alloc.Stats{Reserved: 128, Regions: 1}
	require.NoError(t, props.Trimmed(walkOf(64, -64), nil, 1, was, is, 128, false))
	requireBroken(t, props.ITrim, props.Trimmed(walkOf(64, -64), nil, 1, was, is, 64, false))
	requireBroken(t, props.ITrim, props.Trimmed(walkOf(128), nil, 1, was, is, 128, false))
	require.NoError(t, props.Trimmed(walkOf(128), nil, 1, was, is, 128, true), "the device refused")

	ranges := []device.Region{{Addr: base, Size: 640}}
	const page = 192 // no power of two
	unmapped := func(c *alloc.Chunk) { c.State = alloc.Unmapped }
	require.NoError(t, props.Trimmed(walkOf(128, -64, 128), ranges, page, was, is, 128, false), "parts of pages")
	require.NoError(t, props.Trimmed(with(walkOf(640), 0, unmapped), ranges, page, was, is, 128, false),
		"a range may stay")
	require.NoError(t, props.Trimmed(with(walkOf(-64, 128, 192), 2, unmapped), ranges, page, was, is, 128, false))
	requireBroken(t, props.ITrim, props.Trimmed(walkOf(-64, 320), ranges, page, was, is, 128, false))
	requireBroken(t, props.ITrim, props.Trimmed(with(walkOf(-64, 128, 128, 64), 2, func(c *alloc.Chunk) {
		c.State = alloc.Cached
	}),
		ranges, page, was, is, 128, false))

	require.NoError(t, props.Drained(walkOf(128), is))
	requireBroken(t, props.IDrain, props.Drained(walkOf(-128), is))
	requireBroken(t, props.IDrain, props.Drained(walkOf(128), alloc.Stats{Live: 1}))

	require.NoError(t, props.Holding(is, is))
	requireBroken(t, props.IHolding, props.Holding(was, is))
}

func TestHonest(t *testing.T) {
	serves := promise.ServesAnywhere(64)
	walk := walkOf(64, -64, 128)
	require.NoError(t, props.Honest(walk, alloc.Request{Size: 129}, serves))
	requireBroken(t, props.IHonest, props.Honest(walk, alloc.Request{Size: 100}, serves))
	require.NoError(t, props.Honest(walk, alloc.Request{Size: 100, Align: 256}, serves), "room, but at no aligned place")
	require.NoError(t, props.Honest(walk, alloc.Request{Size: ^device.Size(0)}, serves))
	newer := with(walkOf(128), 0, func(c *alloc.Chunk) { c.FreedAt = 5 })
	require.NoError(t, props.Honest(newer, alloc.Request{Size: 1, Before: 4}, serves))
	requireBroken(t, props.IHonest, props.Honest(newer, alloc.Request{Size: 1, Before: 5}, serves))
}

func TestRefusalRecord(t *testing.T) {
	r := alloc.Request{Size: 100}
	walk := walkOf(64, -64, 128)
	right := power.Refusal{Reason: power.ReasonDevice, Request: r, Device: device.ErrOutOfMemory,
		LargestHole: 128, Free: 192}
	require.NoError(t, props.RefusalRecord(walk, right, r, true, true, false))
	for name, change := range map[string]func(*power.Refusal){
		"request": func(f *power.Refusal) { f.Request.Size++ },
		"none":    func(f *power.Refusal) { f.Reason = power.ReasonNone },
		"kind":    func(f *power.Refusal) { f.Reason = power.ReasonZero },
		"device":  func(f *power.Refusal) { f.Device = nil },
		"region":  func(f *power.Refusal) { f.Reason = power.ReasonUnusable },
		"hole":    func(f *power.Refusal) { f.LargestHole = 64 },
		"free":    func(f *power.Refusal) { f.Free = 128 },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := right
			change(&wrong)
			requireBroken(t, props.IRecord, props.RefusalRecord(walk, wrong, r, true, true, false))
		})
	}
}

func TestRequestAnswer(t *testing.T) {
	const ceiling = 1000
	promising := &promise.Set{Quantum: 64}
	granting := &promise.Set{Quantum: 64, ZeroSize: true, Honours: func(r alloc.Request) bool { return r.Align <= 128 }}
	other := errors.New("device: gone")
	for _, c := range []struct {
		name  string
		p     *promise.Set
		r     alloc.Request
		right []error
	}{
		{"plain", promising, alloc.Request{Size: 1}, []error{nil, alloc.ErrOutOfMemory}},
		{"at the ceiling", promising, alloc.Request{Size: ceiling}, []error{nil, alloc.ErrOutOfMemory}},
		{"above it", promising, alloc.Request{Size: ceiling + 1}, []error{alloc.ErrInvalidRequest}},
		{"nothing", promising, alloc.Request{}, []error{alloc.ErrInvalidRequest}},
		{"nothing, granted", granting, alloc.Request{}, []error{nil, alloc.ErrOutOfMemory}},
		{"small alignment", promising, alloc.Request{Size: 1, Align: 64}, []error{nil, alloc.ErrOutOfMemory}},
		{"large alignment", promising, alloc.Request{Size: 1, Align: 128},
			[]error{nil, alloc.ErrOutOfMemory, alloc.ErrInvalidRequest}},
		{"honoured", granting, alloc.Request{Size: 1, Align: 128}, []error{nil, alloc.ErrOutOfMemory}},
		{"not honoured", granting, alloc.Request{Size: 1, Align: 256}, []error{alloc.ErrInvalidRequest}},
		{"no power of two", granting, alloc.Request{Size: 1, Align: 96}, []error{alloc.ErrInvalidRequest}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, answer := range []error{nil, alloc.ErrOutOfMemory, alloc.ErrInvalidRequest, alloc.ErrInvalidFree, other} {
				err := props.RequestAnswer(c.p, c.r, ceiling, true, answer)
				right := false
				for _, a := range c.right {
					right = right || errors.Is(answer, a)
				}
				assert.Equal(t, right, err == nil, "answer %v: %v", answer, err)
			}
		})
	}
}
