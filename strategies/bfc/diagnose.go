package bfc

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
)

// name is the allocator's name in reports.
const name = "bfc"

// MemoryMap returns a snapshot for tools, see [inspect.MapOf].
func (a *Allocator) MemoryMap() inspect.MemoryMap { return inspect.MapOf(a, name) }

// HumanBytes returns n as the original prints sizes: below 1024 in bytes, else in the
// largest unit of which there is one, with one decimal for KiB and two above. Units above
// KiB are reached by whole divisions by 1024, so that digits below the last but one step
// are cut off before the rest is rounded.
func HumanBytes(n device.Size) string { return string(appendHuman(nil, n)) }

// appendHuman appends HumanBytes to text.
func appendHuman(text []byte, n device.Size) []byte {
	if n < device.KiB {
		return append(strconv.AppendUint(text, uint64(n), 10), 'B')
	}
	units := "KMGTPE"
	for n >= device.MiB {
		n /= 1024
		units = units[1:]
	}
	decimals := 2
	if units[0] == 'K' {
		decimals = 1
	}
	text = strconv.AppendFloat(text, float64(n)/1024, 'f', decimals, 64)
	return append(text, units[0], 'i', 'B')
}

// report is text under construction.
type report struct{ text []byte }

// add appends strings and numbers. Sizes are written the human way, any other number in
// decimal, addresses in hexadecimal.
func (r *report) add(parts ...any) *report {
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			r.text = append(r.text, v...)
		case int:
			r.text = strconv.AppendInt(r.text, int64(v), 10)
		case int32:
			r.text = strconv.AppendInt(r.text, int64(v), 10)
		case uint64:
			r.text = strconv.AppendUint(r.text, v, 10)
		case device.Size:
			r.text = appendHuman(r.text, v)
		case device.Addr:
			r.text = append(r.text, v.String()...)
		}
	}
	return r
}

func (r *report) line() { r.text = append(r.text, '\n') }

// AppendReport implements [power.Reporter]. The parts and their order are the original's: the
// request, bins, the free chunks of the request's bin, every chunk, a histogram of the live ones,
// totals, counters, the rendering. O(chunks log chunks).
func (a *Allocator) AppendReport(text []byte, refused alloc.Request) []byte {
	r := report{text}
	a.reportRequest(&r, refused)
	for _, b := range a.MemoryMap().Bins {
		r.add("Bin (", uint64(b.Size), "): chunks ", b.ChunksInBin, ", in use ", b.ChunksInUse, "; ",
			b.BytesInBin, " allocated, ", b.BytesInUse, " in use, ", b.RequestedInUse, " requested by clients.").line()
	}
	a.reportBin(&r, refused)
	a.reportChunks(&r)
	a.reportHistogram(&r)
	a.reportTotals(&r)
	r.add(a.Rendering()).line()
	return r.text
}

// reportRequest appends the request with its two sizes and its origin, and the remedy against
// fragmentation that the original names since 2021, with the figures that say whether it applies.
func (a *Allocator) reportRequest(r *report, refused alloc.Request) {
	size := roundUp(min(refused.Size, maxRequest))
	r.add("Allocator (", name, ") ran out of memory: a request of ", refused.Size, ", rounded to ", uint64(size),
		" bytes, tag ", refused.Tag)
	if o := refused.Origin; o != 0 {
		r.add(", site ", device.Addr(o.Site()), ", thread ", int(o.Thread()))
	}
	r.line()
	if a.cfg.Variant == V2016 {
		return
	}
	r.add("If fragmentation is the cause (", a.front.Stats.Reserved-a.front.Stats.Active, " free, the largest chunk ",
		a.LargestFree(), "), TF_GPU_ALLOCATOR=cuda_malloc_async may help.").line()
}

// reportBin appends the free chunks of the request's bin, which are nearest in size.
func (a *Allocator) reportBin(r *report, refused alloc.Request) {
	size := roundUp(min(refused.Size, maxRequest))
	bin := binOf(size)
	r.add("Request of ", refused.Size, ", rounded to ", size, ", tag ", refused.Tag, ", belongs to bin ", bin, " of ",
		binSize(bin), "; its free chunks:").line()
	for owner := range a.bins {
		for e := range a.bins[owner].From(binSize(bin)) {
			if binOf(e.Size) != bin {
				break
			}
			a.reportFree(r, e.Handle)
		}
	}
}

func (a *Allocator) reportFree(r *report, h handle) {
	c := a.chunks.rows[h]
	r.add("  ").chunk(a.view(h))
	if c.prev != none {
		r.add(", prev: ").chunk(a.view(c.prev))
	}
	if c.next != none {
		r.add(", next: ").chunk(a.view(c.next))
	}
	r.line()
}

// chunk appends the sizes, the use and the bin of a chunk.
func (r *report) chunk(c alloc.Chunk) {
	use := "free"
	if c.State == alloc.Live {
		use = "in use"
	}
	r.add("size ", c.Size, ", requested ", c.Requested, ", ", use, ", bin ", c.Class)
}

// reportChunks appends every region with every chunk. The number of the next chunk is all
// ones for the last of a region, as the original has it.
func (a *Allocator) reportChunks(r *report) {
	for _, number := range a.regions.order {
		rg := &a.regions.rows[number]
		r.add("Region of ", uint64(rg.size), " bytes at ", rg.addr, ":").line()
		for h := rg.first; h != none; h = a.chunks.rows[h].next {
			c := &a.chunks.rows[h]
			use, next := "  Free   ", ^uint64(0)
			if c.tag.state() == live {
				use = "  In use "
			}
			if c.next != none {
				next = uint64(c.next)
			}
			r.add(use, c.addr, " of ", uint64(c.size), " bytes, next ", next)
			if c.tag.state() == live {
				v := a.view(h)
				r.add(", requested ", uint64(v.Requested), ", tag ", v.Tag)
			}
			if a.cfg.Timing {
				r.add(", freed at ", a.chunks.freedAt[h])
			}
			r.line()
		}
	}
}

// reportHistogram appends how many live chunks there are of each size, and their sum.
func (a *Allocator) reportHistogram(r *report) {
	var sizes []device.Size
	for c := range a.Walk {
		if c.State == alloc.Live {
			sizes = append(sizes, c.Size)
		}
	}
	slices.SortFunc(sizes, cmp.Compare[device.Size])
	r.add("Chunks in use by size:").line()
	for i := 0; i < len(sizes); {
		n := 1
		for i+n < len(sizes) && sizes[i+n] == sizes[i] {
			n++
		}
		r.add("  ", n, " of ", uint64(sizes[i]), " bytes: ", device.Size(n)*sizes[i]).line()
		i += n
	}
	r.add("Sum of chunks in use: ", a.front.Stats.Allocated).line()
}

func (a *Allocator) reportTotals(r *report) {
	s := a.Stats()
	left := int64(s.Limit - s.Reserved) // below zero when the device gave more than was asked
	r.add("Pool ", uint64(s.Reserved), " bytes, limit ", uint64(s.Limit), ", left ", int(left),
		", next region ", uint64(s.NextRegion)).line()
	for _, c := range []struct {
		name  string
		value uint64
	}{
		{"Limit", uint64(s.Limit)},
		{"InUse", uint64(s.Allocated)},
		{"MaxInUse", uint64(s.PeakAllocated)},
		{"NumAllocs", s.Allocs},
		{"MaxAllocSize", uint64(s.LargestAlloc)},
	} {
		r.add(c.name, ": ", c.value).line()
	}
}
