package export_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/harness/trace/vectors"
)

// viewer is a model of the page pytorch.org/memory_viz. It undoes the entries from the final state
// back to the first one, and fails if an entry refers to a missing segment or block.
type viewer struct {
	segments []shownSegment // by address
	blocks   map[int64]shownBlock
}

type shownSegment struct{ addr, size, stream int64 }

type shownBlock struct {
	size, requested int64
	given           bool
}

// open opens a file, and returns the entries of the first device.
func (v *viewer) open(file []byte) ([]dict, error) {
	root, err := unpickle(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	top := root.(dict)
	traces := top["device_traces"].(*list).items
	v.blocks = map[int64]shownBlock{}
	for _, x := range top["segments"].(*list).items {
		if err := v.segment(x.(dict), len(traces)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(v.segments, func(a, b shownSegment) int { return int(a.addr - b.addr) })
	var entries []dict
	categories := map[any]bool{}
	for _, x := range traces[0].(*list).items {
		e := x.(dict)
		if c, ok := e["category"]; ok {
			categories[c] = true
		}
		if err := frames(e["frames"]); err != nil {
			return nil, err
		}
		if _, ok := e["time_us"].(int64); !ok {
			return nil, fmt.Errorf("entry without time_us: %v", e)
		}
		entries = append(entries, e)
	}
	if len(categories) > 0 && !categories["unknown"] {
		return nil, fmt.Errorf("no entry has the category unknown")
	}
	return entries, nil
}

// segment takes a segment and its blocks, which must tile it.
func (v *viewer) segment(s dict, devices int) error {
	if s["device"].(int64) >= int64(devices) {
		return fmt.Errorf("a segment of device %d, which has no entries", s["device"])
	}
	addr, size := s["address"].(int64), s["total_size"].(int64)
	v.segments = append(v.segments, shownSegment{addr, size, s["stream"].(int64)})
	if addr+size >= 1<<53 {
		return fmt.Errorf("address %#x", addr)
	}
	if _, ok := s["allocated_size"].(int64); !ok {
		return fmt.Errorf("no allocated_size")
	}
	at := addr
	for _, x := range s["blocks"].(*list).items {
		b := x.(dict)
		if a, ok := b["address"]; ok && a != at {
			return fmt.Errorf("block at %#x, want %#x", a, at)
		}
		if err := frames(b["frames"]); err != nil {
			return err
		}
		state := b["state"].(string)
		if state != "inactive" {
			v.blocks[at] = shownBlock{b["size"].(int64), b["requested_size"].(int64), state != "active_allocated"}
		}
		at += b["size"].(int64)
	}
	if at != addr+size {
		return fmt.Errorf("blocks of the segment at %#x end at %#x", addr, at)
	}
	return nil
}

// frames checks a stack.
func frames(v any) error {
	if v == nil {
		return nil
	}
	for _, x := range v.(*list).items {
		f := x.(dict)
		_, name := f["name"].(string)
		_, file := f["filename"].(string)
		_, line := f["line"].(int64)
		if !name || !file || !line {
			return fmt.Errorf("frame %v", f)
		}
	}
	return nil
}

// undo takes an entry back.
func (v *viewer) undo(e dict) error {
	size, stream := e["size"].(int64), e["stream"].(int64)
	if e["action"] == "oom" {
		_, ok := e["device_free"].(int64)
		if !ok {
			return fmt.Errorf("no device_free")
		}
		return nil
	}
	addr := e["addr"].(int64)
	switch e["action"] {
	case "alloc":
		if _, ok := v.blocks[addr]; !ok {
			return fmt.Errorf("nothing to take away")
		}
		delete(v.blocks, addr)
	case "free_completed":
		if _, ok := v.blocks[addr]; ok {
			return fmt.Errorf("a block is there")
		}
		if v.under(addr) < 0 {
			return fmt.Errorf("no segment is there")
		}
		v.blocks[addr] = shownBlock{size, size, true}
	case "free_requested":
		b, ok := v.blocks[addr]
		if !ok || !b.given {
			return fmt.Errorf("block is undefined")
		}
		b.given = false
		v.blocks[addr] = b
	case "segment_alloc":
		i := v.under(addr)
		if i < 0 || v.segments[i] != (shownSegment{addr, size, stream}) {
			return fmt.Errorf("no such segment")
		}
		v.segments = slices.Delete(v.segments, i, i+1)
	case "segment_free":
		v.insert(shownSegment{addr, size, stream})
	case "segment_map":
		return v.cut(shownSegment{addr, size, stream})
	case "segment_unmap":
		v.join(v.insert(shownSegment{addr, size, stream}))
	default:
		return fmt.Errorf("unknown action")
	}
	return nil
}

// under returns the segment that an address lies in, or -1.
func (v *viewer) under(a int64) int {
	return slices.IndexFunc(v.segments, func(s shownSegment) bool { return s.addr <= a && a < s.addr+s.size })
}

// insert adds a segment and returns its place.
func (v *viewer) insert(s shownSegment) int {
	i := slices.IndexFunc(v.segments, func(o shownSegment) bool { return o.addr > s.addr })
	if i < 0 {
		i = len(v.segments)
	}
	v.segments = slices.Insert(v.segments, i, s)
	return i
}

// join joins a segment with its neighbours of the same stream.
func (v *viewer) join(i int) {
	for _, k := range []int{i, i - 1} {
		if k < 0 || k+1 >= len(v.segments) {
			continue
		}
		a, b := v.segments[k], v.segments[k+1]
		if a.addr+a.size == b.addr && a.stream == b.stream {
			v.segments[k].size += b.size
			v.segments = slices.Delete(v.segments, k+1, k+2)
		}
	}
}

// cut takes a range out of the segment that it lies in.
func (v *viewer) cut(s shownSegment) error {
	i := v.under(s.addr)
	if i < 0 {
		return fmt.Errorf("no segment is there")
	}
	o := v.segments[i]
	if o.stream != s.stream || s.addr+s.size > o.addr+o.size {
		return fmt.Errorf("the segment there is %+v", o)
	}
	v.segments = slices.Delete(v.segments, i, i+1)
	for _, rest := range []shownSegment{
		{o.addr, s.addr - o.addr, o.stream}, {s.addr + s.size, o.addr + o.size - s.addr - s.size, o.stream},
	} {
		if rest.size > 0 {
			v.insert(rest)
		}
	}
	return nil
}

// view opens a file as the viewer does, and goes back to its beginning, where nothing may be left.
func view(file []byte) (entries []dict, err error) {
	var v viewer
	if entries, err = v.open(file); err != nil {
		return nil, err
	}
	for i, e := range slices.Backward(entries) {
		if err := v.undo(e); err != nil {
			return nil, fmt.Errorf("entry %d %v: %w", i, e, err)
		}
	}
	if len(v.blocks) > 0 || len(v.segments) > 0 {
		return nil, fmt.Errorf("at the beginning there are %d blocks and %d segments", len(v.blocks), len(v.segments))
	}
	return entries, nil
}

// TestViewerOpensSnapshots writes a snapshot of random replays through every strategy, opens it as
// the viewer does, and reads it back.
func TestViewerOpensSnapshots(t *testing.T) {
	for seed := range uint64(3) {
		tr := randomTrace(t, 100+seed, 1500)
		for _, s := range everySetup(t, 256*device.MiB) {
			t.Run(fmt.Sprintf("%s/%d", s.Name, seed), func(t *testing.T) {
				r, res := recorded(t, tr, s, sim.Config{Capacity: 256 * device.MiB}, replay.AtCompleted)
				var file bytes.Buffer
				require.NoError(t, r.WriteSnapshot(&file))
				require.Equal(t, []byte{0x80, 4}, file.Bytes()[:2], "protocol")
				entries, err := view(file.Bytes())
				require.NoError(t, err)
				want, err := r.Snapshot()
				require.NoError(t, err)
				got, err := torch.Read(&file, nil)
				require.NoError(t, err)
				require.Empty(t, got.Unknown)
				require.Equal(t, named(want), named(got))
				require.Equal(t, want.Settings, got.Settings)
				require.Len(t, got.Annotations, len(want.Annotations))
				h := &got.Devices[0].History
				require.Equal(t, len(entries), h.Len())
				m, err := replayed(h)
				require.NoError(t, err)
				require.NoError(t, m.agrees(got.Devices[0].Segments))
				require.Equal(t, counts{res.Allocs, res.OOMs}, countsOf(h))
			})
		}
	}
}

// TestViewerOpensSnapshotsOfVectors opens replays of golden traces that lead every strategy through
// pools, streams and a device that is too small; strategies that map pages have some of them side
// by side.
func TestViewerOpensSnapshotsOfVectors(t *testing.T) {
	all, err := vectors.Torch()
	require.NoError(t, err)
	want := []string{"private_pools", "expandable_multi_stream_oom", "nested_pools_oom"}
	for _, v := range all {
		if !slices.Contains(want, v.Name) {
			continue
		}
		want = slices.DeleteFunc(want, func(id string) bool { return id == v.Name })
		tr, err := v.Trace()
		require.NoError(t, err)
		for _, s := range everySetup(t, 2*device.GiB) {
			t.Run(v.ID()+"/"+s.Name, func(t *testing.T) {
				r, _ := recorded(t, tr, s, sim.Config{Capacity: 2 * device.GiB}, "")
				var file bytes.Buffer
				require.NoError(t, r.WriteSnapshot(&file))
				_, err := view(file.Bytes())
				require.NoError(t, err)
			})
		}
	}
	require.Empty(t, want, "vectors that are not there")
}

// named returns the segments and entries of a snapshot, each with the text of its stack in place of
// the number, which a file need not keep.
func named(s *torch.Snapshot) (lines []string) {
	text := func(stack uint32) (text string) {
		for f := range s.Stack(stack) {
			text += s.Strings[s.Frames[f].Function] + " "
		}
		return text
	}
	d := &s.Devices[0]
	for _, x := range d.Segments {
		blocks := x.Blocks
		x.Blocks = nil
		lines = append(lines, fmt.Sprint(x))
		for _, b := range blocks {
			name := text(b.Stack)
			b.Stack = 0
			lines = append(lines, fmt.Sprint(b, name))
		}
	}
	for i := range d.History.Len() {
		e := d.History.At(i)
		name, stream := text(e.Stack), d.History.Streams[e.Stream]
		e.Stack, e.Stream = 0, 0
		lines = append(lines, fmt.Sprint(e, name, stream))
	}
	return lines
}

// TestSnapshotNamesItsOrigin looks at tags, streams, times and settings of a small replay.
func TestSnapshotNamesItsOrigin(t *testing.T) {
	r := example(t, "caching:split", alloc.Request{Size: 1000, Stream: 1 << 40}, alloc.Request{Size: 3 * device.MiB})
	var file bytes.Buffer
	require.NoError(t, r.WriteSnapshot(&file))
	root, err := unpickle(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	settings := root.(dict)["allocator_settings"].(dict)
	require.Equal(t, "max_split_size_mb:128", settings["PYTORCH_CUDA_ALLOC_CONF"])
	require.Equal(t, "caching:split", settings[torch.KeyReplayed])
	require.Equal(t, "example", settings[torch.KeyReplayedTrace])
	require.Contains(t, settings[torch.KeyReplayedConfig], `"conf":"max_split_size_mb:128"`)
	entries, err := view(file.Bytes())
	require.NoError(t, err)
	var lines []string
	for _, e := range entries {
		line := fmt.Sprintf("%v %v %v", e["action"], e["size"], e["stream"])
		if l, ok := e["frames"].(*list); ok && len(l.items) > 0 {
			f := l.items[0].(dict)
			line += fmt.Sprintf(" %v in %v", f["name"], f["filename"])
		}
		lines = append(lines, line)
	}
	require.Equal(t, strings.Join([]string{
		"segment_alloc 2097152 1099511627776",
		"alloc 1000 1099511627776 tensor 0 in example",
		"segment_alloc 20971520 0",
		"alloc 3145728 0 tensor 1 in example",
		"free_requested 1000 1099511627776 tensor 0 in example",
		"free_completed 1000 1099511627776 tensor 0 in example",
	}, "\n"), strings.Join(lines, "\n"))
}
