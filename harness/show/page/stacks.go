package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
)

// Stacks holds the stacks with which a program made the allocations of a trace.
type Stacks interface {
	// Stack returns the number of the stack of an allocation, 0 if it is not known.
	Stack(id uint64) uint32
	// Lines returns the lines of a stack, at least one, the innermost first, and its call site.
	Lines(stack uint32) (lines []string, site string)
}

const (
	mostFrames = 64  // innermost places that are kept of a stack
	mostLine   = 280 // characters of a place: a path and the name of a function

	stackUnknown = 0 // numbers of a page in the place of a stack
	stackLeftOut = 1
	stackFirst   = 2

	frameDeeper = 1<<32 - 1 // stands for the outer places of a stack that are not kept
)

// roomForStacks returns how many bytes stacks may take beside so many blocks, before they are
// compressed. It falls with the blocks that are kept, so that a page that is too large loses both.
func roomForStacks(blocks int) int { return max(16<<10, min(64*blocks, 1<<20)) }

// stackWeights adds up what the blocks of each stack weigh.
type stackWeights struct {
	of     Stacks
	weight map[uint32]float64
	blocks int // that are kept
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

func (w *stackWeights) instant(x *Instant) {
	w.blocks = max(w.blocks, len(x.Chunks)) // most of them are among the rectangles of a page
	for i := range x.Chunks {
		if c := &x.Chunks[i]; inUse(c) {
			w.add(c.ID, float64(c.Size))
		}
	}
}

// stackTable numbers the stacks that a page, or an answer, has room for. The nil table knows none.
type stackTable struct {
	of      Stacks
	number  map[uint32]uint32 // of stacks that are kept
	starts  []uint32          // by number: the first of its frames
	frames  []uint32          // places, stack by stack
	sites   []uint32          // by number: the place of the call site
	places  []string
	texts   map[string]uint32 // places, by their text
	leftOut int               // stacks
}

// table keeps the heaviest stacks, until there is no room for the next.
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

// take adds the lines of a stack and returns the bytes that they take, or more than there is room
// for.
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

// place returns the number of a place, and the bytes that it takes if it is new.
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

// inUse reports whether a chunk is a block.
func inUse(c *Cell) bool { return c.State == alloc.Live || c.State == alloc.Pending }

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
		"places": e.u8([]byte(strings.Join(t.places, "\n"))), // clip leaves no line break in them
		"frames": e.u32(t.frames), "starts": e.u32(t.starts), "sites": e.u32(t.sites), "left_out": t.leftOut,
	}
}

// stacksOf returns the table of all that is drawn of a trace, nil if nothing is known of stacks.
func stacksOf(t *Traced) *stackTable {
	if t.Stacks == nil {
		return nil
	}
	w := &stackWeights{of: t.Stacks, weight: map[uint32]float64{}}
	for i := range t.Runs {
		if p := t.Runs[i].Picture; p != nil {
			w.rects(p.Rects, t.Picture.Grid.Events)
			for k := range p.Instants {
				w.instant(&p.Instants[k])
			}
		}
	}
	return w.table()
}
