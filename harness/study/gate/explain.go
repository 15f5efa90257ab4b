package gate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/internal/units"
)

// Change is how blocks differ from those of the budget.
type Change string

// The changes.
const (
	BlockAdded Change = "added"       // the work allocates more of them
	BlockGrew  Change = "grew"        // as many are larger
	BlockMoved Change = "moved"       // another stream allocated them before
	BlockHeld  Change = "held longer" // as many, of which more are live at the peak
)

// Cause is blocks that explain a regression.
type Cause struct {
	Change Change        `json:"change"`          // what changed
	At     string        `json:"at"`              // call site, tag or size
	Lines  []string      `json:"stack,omitempty"` // of one of them, innermost first; absent: not recorded
	Size   device.Size   `json:"size_bytes"`      // of each
	Before device.Size   `json:"before_bytes"`    // of each before it grew; 0: it did not grow
	Stream device.Stream `json:"stream"`          // streams are numbered by their first use
	Blocks int           `json:"block_count"`     // number of blocks, at most
	Bytes  device.Size   `json:"more_bytes"`      // in sum, of the blocks that are certain

	// Unlisted is how many of the blocks the budget may already have had without listing them,
	// because a kind with few bytes in sum is not listed.
	Unlisted int `json:"unlisted_block_count,omitempty"`
}

// String describes the blocks.
func (c *Cause) String() string {
	text := fmt.Sprintf("%s of %s", units.Several(c.Blocks, "block"), units.Bytes(c.Size))
	switch {
	case c.Unlisted == c.Blocks:
		text = "at most " + text
	case c.Unlisted > 0:
		text = fmt.Sprintf("%d to %s", c.Blocks-c.Unlisted, text)
	}
	switch c.Change {
	case BlockGrew:
		return fmt.Sprintf("%s grew from %s", text, units.Bytes(c.Before))
	case BlockMoved:
		return fmt.Sprintf("%s moved to stream %d", text, uint64(c.Stream))
	}
	return text + " " + string(c.Change)
}

// Site is the memory of a call site at the peak.
type Site struct {
	At     string      `json:"at"`           // call site without line numbers and outer folders, tag or size
	Before device.Size `json:"before_bytes"` // live at the peak of the budget
	Now    device.Size `json:"now_bytes"`    // live at the peak of the work
}

// renamed are the stacks of a canonical trace.
type renamed struct {
	top.Stacks
	ids []uint64
}

func (r renamed) Stack(id uint64) uint32 {
	if id >= uint64(len(r.ids)) {
		return 0 // a refused request
	}
	return r.Stacks.Stack(r.ids[id])
}

// Blocks returns the allocations of the work by kind, and the property that names them.
func (w *Work) Blocks() (top.Grouping, []top.Kind, error) {
	c := w.whole()
	var stacks top.Stacks
	if w.stacks != nil {
		stacks = renamed{w.stacks, c.ids}
	}
	return top.Census(c.Trace, stacks)
}

// The parts of a call site that differ between equal programs: an edit above a line changes its
// number, and each machine has the repository in another folder.
var (
	lineNumber   = regexp.MustCompile(`:\d+ `)
	outerFolders = regexp.MustCompile(`\S*/([^\s/]+/[^\s/]+:\d+ )`)
)

// placeOf returns a call site without the parts that differ between equal programs.
func placeOf(site string) string {
	return lineNumber.ReplaceAllString(outerFolders.ReplaceAllString(site, "$1"), " ")
}

// remainder is the blocks of a kind that have no counterpart yet.
type remainder struct {
	top.Kind
	place string
	n     int
}

// explanation compares the blocks of the work with those of the budget.
type explanation struct {
	before, now []*remainder
}

// remainders returns the kinds with the number of blocks that count returns.
func remainders(kinds []top.Kind, by top.Grouping, count func(*top.Kind) int) []*remainder {
	var all []*remainder
	for _, k := range kinds {
		r := &remainder{Kind: k, place: k.At, n: count(&k)}
		if by == top.ByCallSite {
			r.place = placeOf(k.At)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b *remainder) int { return cmp.Compare(b.Size, a.Size) })
	return all
}

// match pairs blocks with equal keys, and calls found with each pair and the number of its blocks.
func (x *explanation) match(key func(*remainder) string, found func(before, now *remainder, n int)) {
	open := map[string][]*remainder{}
	for _, b := range x.before {
		if b.n > 0 {
			open[key(b)] = append(open[key(b)], b)
		}
	}
	for _, r := range x.now {
		for k := key(r); r.n > 0 && len(open[k]) > 0; {
			b := open[k][0]
			n := min(b.n, r.n)
			b.n, r.n = b.n-n, r.n-n
			if found != nil {
				found(b, r, n)
			}
			if b.n == 0 {
				open[k] = open[k][1:]
			}
		}
	}
}

// compareBlocks pairs blocks of equal size and stream: at the same line, at the same place, and
// elsewhere.
func compareBlocks(e *Budget, by top.Grouping, now []top.Kind, count func(*top.Kind) int) *explanation {
	x := &explanation{before: remainders(e.Blocks, e.By, count), now: remainders(now, by, count)}
	size := func(r *remainder) string { return fmt.Sprint(uint64(r.Size), " ", uint64(r.Stream)) }
	x.match(func(r *remainder) string { return size(r) + r.At }, nil)
	x.match(func(r *remainder) string { return size(r) + r.place }, nil)
	x.match(size, nil)
	return x
}

// explain adds to a result the blocks that differ from those of the budget.
func explain(r *Result, e *Budget, by top.Grouping, blocks []top.Kind) {
	now := above(blocks, e.Above)
	r.Causes = causes(e, by, now)
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if r.Violated() == 0 {
		more := ""
		if n := len(r.Causes); n > 1 {
			more = fmt.Sprintf(", and %d more", n-1)
		}
		for _, c := range r.Causes[:min(len(r.Causes), 1)] {
			note("Blocks changed and no figure is violated: %s at %s%s.", &c, c.At, more)
		}
		return
	}
	switch {
	case len(r.Causes) == 0:
		note("No block was added, grew or is held longer: the order of the requests changed, or a block of the same size " +
			"replaced another.")
	case e.By != by:
		note("The budget names blocks by %s, the recording by %s: they are compared by size.", e.By, by)
	}
	if e.Above > 0 {
		note("Blocks with less than %s in sum are not compared: the budget does not list them.", units.Bytes(e.Above))
	}
	if e.By == by {
		r.Sites = sites(e.Blocks, now, by)
	}
}

// causes returns the blocks that were added, grew, moved or, if there are none, are held longer,
// with the most bytes first.
func causes(e *Budget, by top.Grouping, now []top.Kind) []Cause {
	all := []Cause{}
	add := func(change Change, k *remainder, before device.Size, n, unlisted int) {
		c := Cause{
			Change: change, At: k.At, Size: k.Size, Before: before, Stream: k.Stream, Blocks: n, Unlisted: unlisted,
			Bytes: (k.Size - before) * device.Size(n-unlisted),
		}
		if by == top.ByCallSite {
			c.Lines = k.Lines
		}
		all = append(all, c)
	}
	rest := func(change Change, x *explanation) {
		for _, k := range x.now {
			if k.n > 0 {
				add(change, k, 0, k.n, min(k.n, unlisted(e, x, k)))
			}
		}
	}
	x := compareBlocks(e, by, now, func(k *top.Kind) int { return k.Count })
	x.match(func(r *remainder) string { return fmt.Sprint(uint64(r.Size), " ", r.place) },
		func(_, now *remainder, n int) { add(BlockMoved, now, 0, n, 0) })
	x.match(func(r *remainder) string { return r.place }, func(before, now *remainder, n int) {
		if now.Size > before.Size {
			add(BlockGrew, now, before.Size, n, 0)
		}
	})
	if rest(BlockAdded, x); len(all) == 0 {
		rest(BlockHeld, compareBlocks(e, by, now, func(k *top.Kind) int { return k.AtPeak }))
	}
	moved := func(c Cause) int {
		if c.Change == BlockMoved {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(moved(a), moved(b)), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.At, b.At))
	})
	return all
}

// unlisted returns how many blocks of a kind the budget may have had without listing the kind.
func unlisted(e *Budget, x *explanation, k *remainder) int {
	listed := func(b *remainder) bool { return b.Size == k.Size && b.Stream == k.Stream && b.place == k.place }
	if e.Above == 0 || k.Size == 0 || slices.ContainsFunc(x.before, listed) {
		return 0
	}
	return int((e.Above - 1) / k.Size)
}

// sites returns the places whose bytes at the peak changed, the largest increase first.
func sites(before, now []top.Kind, by top.Grouping) []Site {
	atPeak := func(k *top.Kind) int { return k.AtPeak }
	places := map[string]*Site{}
	at := func(r *remainder) *Site {
		if places[r.place] == nil {
			places[r.place] = &Site{At: r.place}
		}
		return places[r.place]
	}
	for _, r := range remainders(before, by, atPeak) {
		at(r).Before += r.Size * device.Size(r.n)
	}
	for _, r := range remainders(now, by, atPeak) {
		at(r).Now += r.Size * device.Size(r.n)
	}
	all := []Site{}
	for _, s := range places {
		if s.Before != s.Now {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b Site) int {
		return cmp.Or(cmp.Compare(int64(b.Now-b.Before), int64(a.Now-a.Before)), cmp.Compare(a.At, b.At))
	})
	return all
}
