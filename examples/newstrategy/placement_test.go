package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// extents are the peak extents of plain first fit on the recorded traces: the most bytes from
// the start of the region to the end of the highest block.
var extents = map[string]device.Size{
	"cpu_gpt2_train_varlen": 3_068_971_776,
	"cpu_resnet50_train":    2_003_765_248,
	"cpu_unet_train":        916_345_344,
	"meta_llama7b_fsdp8":    18_043_640_832,
	"meta_llama7b_lora":     62_829_947_392,
	"meta_moe_ep_train":     84_677_302_272,
	"meta_resnet50_b256":    11_427_417_088,
}

// gap is a free interval of the oracle, in bytes from the start of the region.
type gap struct{ from, to device.Size }

// gaps is the inverse of first fit: it stores the free intervals, by address, and no two of
// them are adjacent.
type gaps []gap

// take removes n bytes from the start of the lowest gap that is large enough.
func (g *gaps) take(n device.Size) (at device.Size) {
	i := slices.IndexFunc(*g, func(h gap) bool { return h.to-h.from >= n })
	at = (*g)[i].from
	if (*g)[i].from += n; (*g)[i].from == (*g)[i].to {
		*g = slices.Delete(*g, i, i+1)
	}
	return at
}

// give adds a gap and merges it with the adjacent ones.
func (g *gaps) give(from, to device.Size) {
	var joined gaps
	for _, h := range *g {
		switch {
		case h.to == from:
			from = h.from
		case h.from == to:
			to = h.to
		default:
			joined = append(joined, h)
		}
	}
	i := 0
	for i < len(joined) && joined[i].from < from {
		i++
	}
	*g = slices.Insert(joined, i, gap{from, to})
}

// TestPlacement compares every placement on recorded traces with those of the oracle.
func TestPlacement(t *testing.T) {
	for name, want := range extents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, err := workload.OpenRecording(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := follow(t, tr); got != want {
				t.Errorf("peak extent %d, want %d", got, want)
			}
		})
	}
}

// follow replays a trace through first fit and oracle and returns the peak extent.
func follow(t *testing.T, tr *trace.Trace) (extent device.Size) {
	dev, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(dev, Config{Capacity: device.TiB})
	if err != nil {
		t.Fatal(err)
	}
	free := gaps{{0, device.TiB}}
	blocks := make([]alloc.Block, tr.Slots)
	for i := range tr.Events {
		switch e := &tr.Events[i]; e.Kind {
		case trace.Alloc:
			size := (e.Size + 255) / 256 * 256
			b, err := f.Alloc(alloc.Request{Size: e.Size})
			if want := free.take(size); err != nil || b.Size != size || b.Addr.Sub(sim.Base) != want {
				t.Fatalf("event %d: %d bytes at %v, error %v: want %d bytes at offset %d", i, b.Size, b.Addr, err, size, want)
			}
			blocks[e.Slot] = b
			extent = max(extent, b.Addr.Add(b.Size).Sub(sim.Base))
		case trace.Free:
			b := blocks[e.Slot]
			if err := f.Free(b.Addr); err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			at := b.Addr.Sub(sim.Base)
			free.give(at, at+b.Size)
		}
	}
	return extent
}

// TestMinimumCapacityIsTheExtent checks the comparison against the placements: first fit
// completes on a device exactly if its extent fits, and the search has a grid of 2 MiB.
func TestMinimumCapacityIsTheExtent(t *testing.T) {
	const name = "cpu_unet_train"
	tr, err := workload.OpenRecording(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := setting.Catalogue{setting.SpecOf("firstfit", "lowest address that fits", New)}.Lookup("firstfit", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := compare.Compare(t.Context(), []*trace.Trace{tr}, []setting.Setup{s}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := r.Runs[0].MinCapacity, device.AlignUp(extents[name], 2*device.MiB)
	if got == nil || *got != want {
		t.Errorf("minimum capacity %v, want %v", got, want)
	}
}

// TestSixtyLines limits the size of the strategy. It counts every line of firstfit.go that is
// neither blank nor a comment, including package clause, imports and closing brackets. The
// configuration and the promises are in config.go and counted separately.
func TestSixtyLines(t *testing.T) {
	for file, most := range map[string]int{"firstfit.go": 60, "config.go": 25} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := linesOfCode(string(source)); n > most {
			t.Errorf("%s has %d lines of code: want at most %d", file, n, most)
		}
	}
}

// linesOfCode counts the lines that are neither blank nor a comment.
func linesOfCode(source string) (n int) {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// TestRefusedByTheDevice checks that a first fit that cannot be built holds nothing and
// grants nothing.
func TestRefusedByTheDevice(t *testing.T) {
	dev, err := sim.New(sim.Config{Capacity: device.MiB})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(dev, Config{Capacity: 2 * device.MiB})
	if !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("got %v, want the error of the device", err)
	}
	if _, err := f.Alloc(alloc.Request{Size: 1}); !errors.Is(err, alloc.ErrOutOfMemory) {
		t.Errorf("got %v, want no room for anything", err)
	}
	if n := dev.Usage().Regions; n != 0 {
		t.Errorf("%d regions are held", n)
	}
}
