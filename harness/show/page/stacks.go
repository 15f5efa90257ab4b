package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
)

// Stacks holds the allocation stacks of a trace.
type Stacks interface {
	// Stack returns the number of the stack of an allocation, 0 if unknown.
	Stack(id uint64) uint32
	// Lines returns the frames of a stack, at least one, innermost first, and its call site.
	Lines(stack uint32) (lines []string, site string)
}

const (
	mostFrames = 64  // innermost frames kept of a stack
	mostLine   = 280 // characters of a frame: path and function

	stackUnknown = 0 // numbers of a page with a special meaning
	stackLeftOut = 1
	stackFirst   = 2

	frameDeeper = 1<<32 - 1 // means omitted outer frames
)

// roomForStacks returns the size limit of uncompressed stacks for this many blocks. It falls with
// the blocks, so that thinning a page reduces both.
func roomForStacks(blocks int) int { return max(16<<10, min(64*blocks, 1<<20)) }

// stackWeights is the total weight of the blocks of each stack.
type stackWeights struct {
	of     Stacks
	weight map[uint32]float64
	blocks int // blocks kept
}

func (w *stackWeights) add(id uint64, weight float64) {
	if stack := w.of.Stack(id); stack != 0 {
		w.weight[stack] += weight
	}
}

func (w *stackWeights) rects(rects []Rect, events int) {
	w.blocks += len(rects)
	for i := range rects {
		w.add(rects[i].ID, rects[i].weight(events))
	}
}

func (w *stackWeights) instant(x *Snapshot) {
	w.blocks = max(w.blocks, len(x.Chunks)) // most are rectangles of the page too
	for i := range x.Chunks {
		if c := &x.Chunks[i]; holdsBlock(c) {
			w.add(c.ID, float64(c.Size))
		}
	}
}

// stackTable numbers the stacks included in a page or response. The nil table is empty.
type stackTable struct {
	of      Stacks
	number  map[uint32]uint32 // by stack
	starts  []uint32          // by number: its first frame
	frames  []uint32          // indices of places, stack by stack
	sites   []uint32          // by number: index of the call site
	places  []string
	texts   map[string]uint32 // index of each place
	leftOut int               // omitted stacks
}

// table includes the heaviest stacks until one does not fit.
func (w *stackWeights) table() *stackTable {
	t := &stackTable{of: w.of, number: map[uint32]uint32{}, texts: map[string]uint32{}}
	order := slices.SortedFunc(maps.Keys(w.weight), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(w.weight[b], w.weight[a]), cmp.Compare(a, b))
	})
	room := roomForStacks(w.blocks)
	for i, stack := range order {
		frames, places := len(t.frames), len(t.places)
		if room -= t.take(stack, room); room < 0 {
			t.frames, t.places, t.leftOut = t.frames[:frames], t.places[:places], len(order)-i
			break
		}
		t.number[stack] = uint32(len(t.starts)) + stackFirst
		t.starts = append(t.starts, uint32(frames))
	}
	t.sites = t.sites[:len(t.number)]
	t.starts = append(t.starts, uint32(len(t.frames)))
	return t
}

// take adds a stack and returns the bytes it takes, or more than room if it does not fit.
func (t *stackTable) take(stack uint32, room int) (taken int) {
	lines, site := t.of.Lines(stack)
	for n, line := range lines {
		if n == mostFrames {
			t.frames = append(t.frames, frameDeeper)
			break
		}
		i, size := t.place(line)
		t.frames = append(t.frames, i)
		if taken += size + 4; taken > room {
			break
		}
	}
	i, size := t.place(site)
	t.sites = append(t.sites, i)
	return taken + size + 8
}

// place returns the index of a place, and the bytes it takes if it is new.
func (t *stackTable) place(line string) (number uint32, taken int) {
	text := clipTo(line, mostLine)
	i, known := t.texts[text]
	if !known {
		i = uint32(len(t.places))
		t.texts[text] = i
		t.places = append(t.places, text)
		taken = len(text) + 1
	}
	return i, taken
}

func holdsBlock(c *Cell) bool { return c.State == alloc.Live || c.State == alloc.Pending }

func (t *stackTable) numberOf(id uint64) uint32 {
	stack := t.of.Stack(id)
	if stack == 0 {
		return stackUnknown
	}
	if n, ok := t.number[stack]; ok {
		return n
	}
	return stackLeftOut
}

func (e *encoder) stackTable(t *stackTable) object {
	return object{
		"places": e.u8([]byte(strings.Join(t.places, "\n"))), // clipped text has no line breaks
		"frames": e.u32(t.frames), "starts": e.u32(t.starts), "sites": e.u32(t.sites), "left_out": t.leftOut,
	}
}

// stacksOf returns the stack table of a trace, nil without stacks.
func stacksOf(t *Traced) *stackTable {
	if t.Stacks == nil {
		return nil
	}
	w := &stackWeights{of: t.Stacks, weight: map[uint32]float64{}}
	for i := range t.Runs {
		if p := t.Runs[i].Picture; p != nil {
			w.rects(p.Rects, t.Picture.Grid.Events)
			for k := range p.Snapshots {
				w.instant(&p.Snapshots[k])
			}
		}
	}
	return w.table()
}
