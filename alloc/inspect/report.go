package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// reportedTags is the maximum number of tags that [AppendFailure] names.
const reportedTags = 10

// AppendHeap appends the heap of any strategy to text, at any time between two calls: a line of
// totals, one for each region, and one for each chunk with address, state and size; of a live or
// pending chunk also the size requested, the stream and the tag. O(chunks).
func AppendHeap(s alloc.Inspector, text []byte) []byte {
	text = appendTotals(s, text)
	var region device.Addr
	for c := range s.Walk {
		if c.Addr == c.Region || c.Region != region {
			region = c.Region
			text = fmt.Appendf(text, "region %v\n", region)
		}
		text = fmt.Appendf(text, "  %v\n", c)
	}
	return text
}

// AppendFailure appends a description of the last refused request of any strategy, if there is one:
// requested and rounded size, alignment, stream and tag, the reason, the size of the failed
// reservation, and the free memory. Then come the current totals, and the tags with the most live
// bytes. It appends at most 15 lines. name returns the text to print for a tag; if it is nil, tags
// are printed as numbers. [power.AppendReport] adds the details of some strategies.
// O(chunks).
func AppendFailure(s alloc.Inspector, text []byte, name func(tag uint64) string) []byte {
	if name == nil {
		name = func(tag uint64) string { return strconv.FormatUint(tag, 10) }
	}
	if r, ok := power.LastRefusal(s); ok {
		rounded := "rounded size not known"
		if r.Rounded != 0 {
			rounded = fmt.Sprintf("rounded to %v", r.Rounded)
		}
		text = fmt.Appendf(text, "refused %v, %s, alignment %v, stream %d, tag %s: %v\n",
			r.Request.Size, rounded, r.Request.Align, uint64(r.Request.Stream), name(r.Request.Tag), r.Reason)
		if r.Asked != 0 {
			text = fmt.Appendf(text, "the device was asked for %v: %v\n", r.Asked, r.Device)
		}
		text = fmt.Appendf(text, "free at the refusal: %v, the largest chunk %v\n", r.Free, r.LargestHole)
	}
	return appendTags(s, appendTotals(s, text), name)
}

func appendTotals(s alloc.Inspector, text []byte) []byte {
	t := s.Stats()
	return fmt.Appendf(text, "live blocks %d: requested %v, rounded to %v; active %v, reserved %v, regions %d, largest "+
		"free chunk %v\n",
		t.Live, t.Requested, t.Allocated, t.Active, t.Reserved, t.Regions, power.LargestFree(s))
}

// appendTags appends a line for each of the tags with the most live bytes.
func appendTags(s alloc.Inspector, text []byte, name func(tag uint64) string) []byte {
	type tagged struct {
		tag                uint64
		blocks             int
		requested, rounded device.Size
	}
	byTag := map[uint64]*tagged{}
	var all []*tagged
	for c := range s.Walk {
		if c.State != alloc.Live {
			continue
		}
		t := byTag[c.Tag]
		if t == nil {
			t = &tagged{tag: c.Tag}
			byTag[c.Tag], all = t, append(all, t)
		}
		t.blocks++
		t.requested += c.Requested
		t.rounded += c.Size
	}
	slices.SortFunc(all, func(a, b *tagged) int {
		return cmp.Or(cmp.Compare(b.rounded, a.rounded), cmp.Compare(a.tag, b.tag))
	})
	for i, t := range all {
		if i == reportedTags {
			return fmt.Appendf(text, "  and %d more tags\n", len(all)-i)
		}
		text = fmt.Appendf(text, "  tag %s: requested %v, rounded to %v, blocks %d\n", name(t.tag), t.requested,
			t.rounded, t.blocks)
	}
	return text
}
