package replay

import (
	"bufio"
	"io"
	"math"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
)

// verdicts are the placement lines of allocations that were not granted.
var verdicts = [...]string{verdictOOM: " OOM", verdictNull: " NULL", verdictInvalid: " INVALID"}

// writePlacement writes the line of one allocation: id, offset from the base of the device and
// granted size, or id and error.
func (r *runner) writePlacement(e *trace.Event, b *block) error {
	if r.torch != nil {
		return r.torch.placement(e, b)
	}
	line := strconv.AppendUint(make([]byte, 0, 64), e.ID, 10)
	if b.live {
		line = strconv.AppendUint(append(line, ' '), uint64(b.addr-sim.Base), 10)
		line = strconv.AppendUint(append(line, ' '), uint64(b.size), 10)
	} else {
		line = append(line, verdicts[b.size]...)
	}
	_, err := r.o.Placements.Write(append(line, '\n'))
	return err
}

// print writes the output of a Print event, if placements are written at all.
func (r *runner) print(what uint64) error {
	if r.o.Placements == nil {
		return nil
	}
	var line string
	switch what {
	case trace.PrintStats:
		line = r.statsLine()
	case trace.PrintMap:
		line = "O " + inspect.Rendering(r.s) + "\n"
	default:
		var ok bool
		if line, ok = r.totals(); !ok {
			r.res.Ignored++
			return nil
		}
	}
	_, err := io.WriteString(r.o.Placements, line)
	return err
}

// statsLine returns the current statistics: P num_allocs in_use peak largest pool
// peak_pool largest_free next_region fragmentation.
func (r *runner) statsLine() string {
	s := r.s.Stats()
	largest := power.LargestFree(r.s)
	line := []byte{'P'}
	for _, v := range []string{
		strconv.FormatUint(s.Allocs, 10), decimal(s.Allocated), decimal(s.PeakAllocated), decimal(s.LargestAlloc),
		decimal(s.Reserved), decimal(s.PeakReserved), decimal(largest), orMinusOne(s.NextRegion),
		fragmentation(s.Reserved-s.Allocated, largest),
	} {
		line = append(append(line, ' '), v...)
	}
	return string(append(line, '\n'))
}

// writeFinal writes the final state in the form of TensorFlow's vectors: statistics (S), rendering
// (O), regions (R) and chunks (C). A figure that the strategy lacks is -1. PyTorch's vectors have a
// form of their own.
func (r *runner) writeFinal(out io.Writer) error {
	if r.torch != nil {
		return r.writeTorchFinal(out)
	}
	w := bufio.NewWriter(out)
	tiles := r.tiles()
	for _, line := range r.finalStats(tiles) {
		w.WriteString("S " + line.name + " " + line.value + "\n")
	}
	w.WriteString("O " + inspect.Rendering(r.s) + "\n")
	for _, region := range tiles.regions {
		w.WriteString("R " + offset(region.Addr) + " " + decimal(region.Size) + "\n")
	}
	serials := make(map[device.Addr]uint64, r.live())
	for i := range r.blocks {
		if b := &r.blocks[i]; b.live {
			serials[b.addr] = b.serial
		}
	}
	for c := range r.s.Walk {
		w.WriteString(chunkLine(c, serials))
	}
	return w.Flush()
}

// chunkLine returns C offset size used requested bin freed_at id.
func chunkLine(c alloc.Chunk, serials map[device.Addr]uint64) string {
	used, requested, id := "0", "0", "-1"
	if c.State == alloc.Live {
		used, requested = "1", decimal(c.Requested)
		id = strconv.FormatUint(serials[c.Addr], 10)
	}
	bin := int64(alloc.NoClass)
	if c.State == alloc.Free {
		bin = int64(c.Class)
	}
	return "C " + offset(c.Addr) + " " + decimal(c.Size) + " " + used + " " + requested + " " +
		strconv.FormatInt(bin, 10) + " " + strconv.FormatUint(c.FreedAt, 10) + " " + id + "\n"
}

// tiling holds the regions and chunk counts of a walk.
type tiling struct {
	regions      []device.Region
	chunks, free int
}

func (r *runner) tiles() (t tiling) {
	for c := range r.s.Walk {
		if n := len(t.regions); n == 0 || t.regions[n-1].Addr != c.Region {
			t.regions = append(t.regions, device.Region{Addr: c.Region})
		}
		t.regions[len(t.regions)-1].Size += c.Size
		t.chunks++
		if c.State == alloc.Free {
			t.free++
		}
	}
	return t
}

// stat is one S line.
type stat struct{ name, value string }

// finalStats returns the S lines in the order of the vectors.
func (r *runner) finalStats(t tiling) []stat {
	s := r.s.Stats()
	largest := power.LargestFree(r.s)
	queued := "-1"
	if n, err := power.QueuedFrees(r.s); err == nil {
		queued = strconv.Itoa(n)
	}
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return []stat{
		{"num_allocs", count(s.Allocs)},
		{"bytes_in_use", decimal(s.Allocated)},
		{"peak_bytes_in_use", decimal(s.PeakAllocated)},
		{"largest_alloc_size", decimal(s.LargestAlloc)},
		{"bytes_limit", orMinusOne(s.Limit)},
		{"pool_bytes", decimal(s.Reserved)},
		{"peak_pool_bytes", decimal(s.PeakReserved)},
		{"largest_free_chunk", decimal(largest)},
		{"next_region_bytes", orMinusOne(s.NextRegion)},
		{"num_regions", strconv.Itoa(s.Regions)},
		{"num_chunks", strconv.Itoa(t.chunks)},
		{"num_free_chunks", strconv.Itoa(t.free)},
		{"timestamped_queue_len", queued},
		{"device_allocs", count(s.Reserves)},
		{"device_frees", count(s.Releases)},
		{"device_alloc_failures", count(s.ReserveFailures)},
		{"fragmentation", fragmentation(s.Reserved-s.Allocated, largest)},
	}
}

// fragmentation prints (free - largest) / free with all its digits; 0/0 is nan, in these
// files only, because the original prints it so.
func fragmentation(free, largest device.Size) string {
	x := float64(free-largest) / float64(free)
	if math.IsNaN(x) {
		return "nan"
	}
	return strconv.FormatFloat(x, 'g', 17, 64)
}

func decimal(n device.Size) string { return strconv.FormatUint(uint64(n), 10) }

func offset(a device.Addr) string { return strconv.FormatUint(uint64(a-sim.Base), 10) }

// orMinusOne prints n, or -1 for 0, which means that the strategy lacks the figure.
func orMinusOne(n device.Size) string {
	if n == 0 {
		return "-1"
	}
	return decimal(n)
}
