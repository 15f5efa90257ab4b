package props_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// bug is a mistake planted in firstFit.
type bug string

// The planted bugs; each must be found.
const (
	none               bug = ""
	mergesNotLeft      bug = "free does not merge with the left neighbour"
	mergesNotRight     bug = "free does not merge with the right neighbour"
	losesRemainder     bug = "a split loses a remainder of one quantum in the middle of a region"
	overlaps           bug = "the third split starts the remainder one quantum early"
	grantsTooLittle    bug = "a request one byte above a quantum gets one quantum"
	ignoresAlign       bug = "alignment is ignored"
	acceptsZero        bug = "a request for nothing is granted"
	acceptsOverflow    bug = "a size near the end of 64 bits wraps around"
	acceptsDoubleFree  bug = "a second free succeeds"
	acceptsInterior    bug = "a free inside a block frees the block"
	refusesOften       bug = "a hole of exactly the right size is not used"
	forgetsTag         bug = "chunks do not carry their tag"
	miscountsFrees     bug = "frees are not counted"
	peakFollows        bug = "the peak falls with its value"
	staleHole          bug = "the largest hole is not looked up again after a free"
	wrongClass         bug = "a merged chunk keeps its class"
	wrongOrder         bug = "the search order is by falling address"
	hidesFree          bug = "the search does not see the last free chunk"
	releasesOnFree     bug = "an empty region goes back when its last block is freed"
	trimLies           bug = "trim returns no bytes"
	trimKeeps          bug = "trim keeps the first region"
	leaksOnClose       bug = "close gives all regions back but the last"
	forgetsOnClose     bug = "close forgets regions that the device refuses to take"
	leaksOnFault       bug = "a refused reservation leaves the one before it behind"
	worksAfterClose    bug = "alloc works after close"
	exceedsLimit       bug = "the limit is checked without the new region"
	dependsOnHistory   bug = "every second instance places from the other end"
	panicsOnManyFrees  bug = "the sixth free panics"
	neverEnds          bug = "a refused reservation is tried for ever"
	walkGoesOn         bug = "a walk ignores that it is told to stop"
	checkFails         bug = "a private index goes stale"
	wrongReason        bug = "the refusal is recorded with the reason of the one before"
	refusalChanges     bug = "a refused free clears the free chunk's class"
	hidesRegion        bug = "a region without a live block is not shown"
	strandsRequest     bug = "a freed chunk keeps the bytes that were asked"
	losesLiveOnFailure bug = "running out of memory frees the first block"
	reservesUncounted  bug = "refused reservations are not counted"
	leaksWhenDrained   bug = "the last block of a region stays pending"
)

// firstFit is a small strategy, meant to be obviously right: regions are slices of chunks
// by address, and the first chunk that serves is taken. With a bug it is wrong.
type firstFit struct {
	src     device.Source
	bug     bug
	limit   device.Size
	regions [][]alloc.Chunk
	stats   alloc.Stats
	refusal power.Refusal
	refused bool
	closed  bool
	splits  int
	hole    device.Size
	odd     bool
}

const (
	ffQuantum = 64
	ffRegion  = 4 * device.KiB
	ffLimit   = 32 * device.KiB
)

var instances int

func newFirstFit(src device.Source, b bug) (*firstFit, error) {
	instances++
	return &firstFit{src: src, bug: b, limit: ffLimit, stats: alloc.Stats{Limit: ffLimit}, odd: instances%2 == 0}, nil
}

func classOf(c alloc.Chunk) int32 { return int32(c.Size / 1024) }

func (f *firstFit) MaxRequest() device.Size { return ffLimit }

func (f *firstFit) refuse(r alloc.Request, why power.Reason, dev error) (alloc.Block, error) {
	if f.bug != wrongReason || !f.refused {
		f.refusal.Reason = why
	}
	f.refused = true
	f.refusal = power.Refusal{Reason: f.refusal.Reason, Request: r, Device: dev}
	if why < power.ReasonLimit {
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	for c := range f.Walk {
		if c.State == alloc.Free {
			f.refusal.Free += c.Size
			f.refusal.LargestHole = max(f.refusal.LargestHole, c.Size)
		}
	}
	f.stats.OOMs++
	if f.bug == losesLiveOnFailure && f.stats.Live > 2 {
		for c := range f.Walk {
			if c.State == alloc.Live {
				_ = f.Free(c.Addr)
				f.stats.Frees--
				break
			}
		}
	}
	return alloc.Block{}, alloc.ErrOutOfMemory
}

func (f *firstFit) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case f.closed && f.bug != worksAfterClose:
		return alloc.Block{}, alloc.ErrClosed
	case r.Size == 0 && f.bug != acceptsZero:
		return f.refuse(r, power.ReasonZero, nil)
	case r.Align != 0 && !device.IsPowerOfTwo(r.Align):
		return f.refuse(r, power.ReasonAlignment, nil)
	case r.Align > 4096 && f.bug != ignoresAlign:
		return f.refuse(r, power.ReasonAlignment, nil)
	case r.Size > ffLimit && !(f.bug == acceptsOverflow && r.Size > 1<<63):
		return f.refuse(r, power.ReasonTooLarge, nil)
	}
	need := max(device.AlignUp(r.Size, device.Size(ffQuantum)), ffQuantum)
	if f.bug == grantsTooLittle && r.Size%ffQuantum == 1 && r.Size > 1 {
		need -= ffQuantum
	}
	if b, ok := f.take(r, need); ok {
		return b, nil
	}
	size := max(ffRegion, need)
	held := f.stats.Reserved + size
	if f.bug == exceedsLimit {
		held = f.stats.Reserved
	}
	if held > f.limit {
		return f.refuse(r, power.ReasonLimit, nil)
	}
	region, err := f.src.Reserve(size, 4096)
	for f.bug == neverEnds && err != nil {
		f.stats.ReserveFailures++
		region, err = f.src.Reserve(size, 4096)
	}
	if err != nil {
		if f.bug != reservesUncounted {
			f.stats.ReserveFailures++
		}
		return f.refuse(r, power.ReasonDevice, err)
	}
	if f.bug == leaksOnFault && len(f.regions) == 2 {
		if _, err := f.src.Reserve(size, 4096); err != nil {
			f.stats.ReserveFailures++
			return f.refuse(r, power.ReasonDevice, err)
		}
	}
	f.stats.RegionAdded(region.Size)
	chunk := alloc.Chunk{Region: region.Addr, Addr: region.Addr, Size: region.Size}
	chunk.Class = classOf(chunk)
	f.regions = append(f.regions, []alloc.Chunk{chunk})
	slices.SortFunc(f.regions, func(a, b []alloc.Chunk) int { return cmp.Compare(a[0].Addr, b[0].Addr) })
	if b, ok := f.take(r, need); ok {
		return b, nil
	}
	return f.refuse(r, power.ReasonUnusable, nil)
}

// take grants need bytes from the first chunk that has them at its start.
func (f *firstFit) take(r alloc.Request, need device.Size) (alloc.Block, bool) {
	for _, i := range f.order() {
		for j, c := range f.regions[i] {
			fits := c.Size >= need && !(f.bug == refusesOften && c.Size == need)
			aligned := r.Align == 0 || c.Addr.IsAligned(r.Align) || f.bug == ignoresAlign
			if c.State != alloc.Free || !fits || !aligned {
				continue
			}
			rest := c
			rest.Addr, rest.Size = c.Addr.Add(need), c.Size-need
			if f.splits++; f.bug == overlaps && f.splits == 3 && rest.Size > 0 && need > ffQuantum {
				rest.Addr, rest.Size = rest.Addr-ffQuantum, rest.Size+ffQuantum
			}
			rest.Class = classOf(rest)
			c.Size, c.State, c.Class = need, alloc.Live, alloc.NoClass
			c.Requested, c.Stream, c.Tag = r.Size, r.Stream, r.Tag
			if f.bug == forgetsTag && f.stats.Allocs > 3 {
				c.Tag = 0
			}
			f.regions[i][j] = c
			if rest.Size > 0 && !(f.bug == losesRemainder && rest.Size == ffQuantum && j+1 < len(f.regions[i])) {
				f.regions[i] = slices.Insert(f.regions[i], j+1, rest)
			}
			f.stats.Granted(r.Size, need)
			f.hole = f.largest()
			return alloc.Block{Addr: c.Addr, Size: need}, true
		}
	}
	return alloc.Block{}, false
}

// order returns the regions in the order in which they are tried.
func (f *firstFit) order() []int {
	var all []int
	for i := range f.regions {
		all = append(all, i)
	}
	if f.bug == dependsOnHistory && f.odd {
		slices.Reverse(all)
	}
	return all
}

func (f *firstFit) Free(a device.Addr) error {
	if f.closed {
		return alloc.ErrClosed
	}
	for i, region := range f.regions {
		for j := range region {
			c := &region[j]
			if f.bug == acceptsInterior && c.State == alloc.Live && a > c.Addr && a < c.Addr+8 {
				a = c.Addr
			}
			if c.Addr != a {
				continue
			}
			if c.State == alloc.Live {
				f.free(i, j)
				return nil
			}
			if f.bug == acceptsDoubleFree {
				return nil
			}
			if f.bug == refusalChanges && c.State == alloc.Free {
				c.Class++
			}
		}
	}
	return alloc.ErrInvalidFree
}

func (f *firstFit) free(i, j int) {
	region := f.regions[i]
	c := &region[j]
	f.stats.Freed(c.Requested, c.Size)
	if f.bug == miscountsFrees && f.stats.Frees > 2 {
		f.stats.Frees--
	}
	if f.bug == peakFollows {
		f.stats.PeakAllocated = f.stats.Allocated
	}
	if f.bug == panicsOnManyFrees && f.stats.Frees == 6 {
		panic("index out of reach")
	}
	requested := c.Requested
	*c = alloc.Chunk{Region: c.Region, Addr: c.Addr, Size: c.Size}
	if f.bug == strandsRequest {
		c.Requested = requested
	}
	if f.bug == leaksWhenDrained && len(region) == 1 {
		c.State = alloc.Pending
	}
	c.Class = classOf(*c)
	if j+1 < len(region) && region[j+1].State == alloc.Free && f.bug != mergesNotRight {
		c.Size += region[j+1].Size
		region = slices.Delete(region, j+1, j+2)
		c = &region[j]
	}
	if j > 0 && region[j-1].State == alloc.Free && f.bug != mergesNotLeft {
		region[j-1].Size += c.Size
		region = slices.Delete(region, j, j+1)
		c = &region[j-1]
	}
	if f.bug != wrongClass {
		c.Class = classOf(*c)
	}
	if f.bug != staleHole {
		f.regions[i] = region
		f.hole = f.largest()
	}
	f.regions[i] = region
	if f.bug == releasesOnFree && len(region) == 1 {
		_ = f.release(i)
	}
}

// release gives region i back.
func (f *firstFit) release(i int) error {
	if err := f.src.Release(f.regions[i][0].Region); err != nil {
		return err
	}
	var size device.Size
	for _, c := range f.regions[i] {
		size += c.Size
	}
	f.stats.RegionReleased(size)
	f.regions = slices.Delete(f.regions, i, i+1)
	return nil
}

func (f *firstFit) Trim() (freed device.Size, err error) {
	if f.closed {
		return 0, alloc.ErrClosed
	}
	for i := len(f.regions) - 1; i >= 0; i-- {
		if len(f.regions[i]) != 1 || f.regions[i][0].State != alloc.Free || f.bug == trimKeeps && i == 0 {
			continue
		}
		size := f.regions[i][0].Size
		if e := f.release(i); e != nil {
			err = e
			continue
		}
		freed += size
	}
	f.hole = f.largest()
	if f.bug == trimLies {
		return 0, err
	}
	return freed, err
}

func (f *firstFit) Close() (err error) {
	f.closed = true
	for i := len(f.regions) - 1; i >= 0; i-- {
		if f.bug == leaksOnClose && i == len(f.regions)-1 && i > 0 {
			f.regions = f.regions[:i]
			continue
		}
		if e := f.release(i); e != nil {
			err = e
		}
	}
	if f.bug == forgetsOnClose {
		f.regions, f.stats = nil, alloc.Stats{}
	}
	return err
}

func (f *firstFit) largest() (n device.Size) {
	for c := range f.Walk {
		if c.State == alloc.Free {
			n = max(n, c.Size)
		}
	}
	return n
}

func (f *firstFit) LargestFree() device.Size {
	if f.bug == staleHole {
		return f.hole
	}
	return f.largest()
}

func (f *firstFit) LastRefusal() (power.Refusal, bool) { return f.refusal, f.refused }
func (f *firstFit) ClearStats()                        { f.stats.Clear() }
func (f *firstFit) Stats() alloc.Stats                 { return f.stats }

func (f *firstFit) Check() error {
	if f.bug == checkFails && f.stats.Frees > 3 && f.stats.Live == 1 {
		return fmt.Errorf("invariant F1: index has %d entries", f.stats.Live+1)
	}
	return nil
}

func (f *firstFit) Walk(yield func(alloc.Chunk) bool) {
	for _, region := range f.regions {
		if f.bug == hidesRegion && len(region) == 1 && region[0].State == alloc.Free && len(f.regions) > 1 {
			continue
		}
		for _, c := range region {
			if !yield(c) && f.bug != walkGoesOn {
				return
			}
		}
	}
}

func (f *firstFit) WalkFree(yield func(alloc.Chunk) bool) {
	var free []alloc.Chunk
	for c := range f.Walk {
		if c.State == alloc.Free {
			free = append(free, c)
		}
	}
	slices.SortStableFunc(free, func(a, b alloc.Chunk) int { return cmp.Compare(a.Class, b.Class) })
	if f.bug == wrongOrder {
		slices.Reverse(free)
	}
	if f.bug == hidesFree && len(free) > 2 {
		free = free[:len(free)-1]
	}
	for _, c := range free {
		if !yield(c) {
			return
		}
	}
}
