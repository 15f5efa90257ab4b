package torch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// write writes a snapshot that must be right.
func write(t testing.TB, s *torch.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, torch.Write(&b, s))
	return b.Bytes()
}

// dump prints a snapshot. Indices are resolved, because a file with its keys in another order
// has other ones; what was ignored is left out.
func dump(s *torch.Snapshot) string {
	var b strings.Builder
	stack := func(id uint32) string {
		var frames []string
		for f := range s.Stack(id) {
			at := s.Frames[f]
			frames = append(frames, fmt.Sprintf("%q:%d:%q", s.Strings[at.File], at.Line, s.Strings[at.Function]))
		}
		return strings.Join(frames, " ")
	}
	for _, d := range s.Devices {
		fmt.Fprintln(&b, "device", d.Ordinal)
		for _, seg := range d.Segments {
			blocks, id := seg.Blocks, seg.Stack
			seg.Blocks, seg.Stack = nil, 0
			fmt.Fprintf(&b, "segment %+v %s\n", seg, stack(id))
			for _, block := range blocks {
				id, block.Stack = block.Stack, 0
				fmt.Fprintf(&b, "block %+v %s\n", block, stack(id))
			}
		}
		h := &d.History
		for i := range h.Len() {
			e := h.At(i)
			fmt.Fprint(&b, e.Action, " ", e.Addr, " ", e.Size, " ", e.Time, " ", h.Streams[e.Stream], " ")
			if h.Pools != nil {
				fmt.Fprint(&b, h.Pools[e.Pool], " ")
			}
			category := s.Strings[e.Category]
			if e.Action == torch.ActionConf {
				category = h.Confs[e.Category]
			}
			fmt.Fprintf(&b, "%q %s\n", category, stack(e.Stack))
		}
	}
	for _, a := range s.Annotations {
		fmt.Fprintf(&b, "annotation %q %t %d %d\n", s.Strings[a.Name], a.Start, a.Device, a.Time)
	}
	fmt.Fprintf(&b, "%#v", s.Settings)
	return b.String()
}

// checkRoundTrip writes what was read and reads it again.
func checkRoundTrip(t testing.TB, s *torch.Snapshot) {
	t.Helper()
	once := write(t, s)
	again := read(t, once)
	require.Equal(t, dump(s), dump(again))
	require.Equal(t, once, write(t, again), "equal snapshots are equal bytes")
}

// TestWritingKeepsVectors reads the vectors, writes them and reads them again.
func TestWritingKeepsVectors(t *testing.T) {
	for _, path := range vectors(t) {
		checkRoundTrip(t, read(t, content(t, path)))
	}
}

// odd returns a snapshot with the values at which its encoding changes.
func odd() *torch.Snapshot {
	s := &torch.Snapshot{Settings: []torch.Setting{
		{Key: "conf", Value: "True", Text: true},
		{Key: "flag", Value: "True"},
		{Key: "none", Value: "None"},
		{Key: "max_split_size", Value: "18446744073709551615"},
		{Key: "whole", Value: "1.0"},
		{Key: "inf", Value: "+Inf"},
		{Key: "roundup", Value: `{"1": 0, "2": [1, true, null, {"a\"b": 0.5}, [], [3, 4]]}`},
	}}
	in := torch.NewInterner(s)
	frames := []uint32{in.Frame(torch.Frame{}), in.Frame(torch.Frame{
		File: in.String(strings.Repeat("long", 100)), Function: in.String("größe"), Line: -1,
	})}
	stacks := []uint32{0, in.Stack(frames[:1]), in.Stack(frames), in.Stack(frames[1:])}
	var h torch.History
	h.Pools = [][2]uint64{{}, {0, 1}, {math.MaxUint64, 2}}
	n := 0
	for _, edge := range []uint64{0, 1 << 8, 1 << 15, 1 << 16, 1 << 31, 1 << 32, 1 << 39, 1 << 40, 1 << 55, 1 << 63,
		math.MaxUint64} {
		for _, x := range []uint64{edge - 1, edge} {
			h.Streams = append(h.Streams, int64(x), -int64(x))
			e := torch.Entry{
				Addr: x, Size: x, Time: int64(x >> 1), Stack: stacks[n%4], Stream: uint16(n % len(h.Streams)),
				Pool: uint16(n % 3), Action: torch.Action(n % 11), Category: in.String([]string{"", "unknown"}[n%2]),
			}
			if e.Action == torch.ActionConf {
				e.Category, h.Confs = uint32(len(h.Confs)), append(h.Confs, []string{"", "a:b"}[n%2])
			}
			h.Append(e)
			n++
		}
	}
	h.Append(torch.Entry{Time: torch.NoTime, Action: torch.ActionOther})
	s.Devices = []torch.Device{
		{Ordinal: 2, History: h, Segments: []torch.Segment{
			{Addr: 4096, Total: 8192, Pool: [2]uint64{0, 3}, Stack: stacks[2]}}},
		{Ordinal: 5, Segments: []torch.Segment{{Stream: -7, Large: true, Expandable: true}}},
	}
	for i := range 2500 {
		s.Devices[1].Segments[0].Blocks = append(s.Devices[1].Segments[0].Blocks, torch.Block{
			Addr: uint64(i), Size: 1, Requested: 9, State: torch.BlockState(i % 3), Stack: stacks[i%4],
		})
		s.Annotations = append(s.Annotations, torch.Annotation{Name: in.String("step"), Start: i%2 == 0, Time: int64(i) - 1})
	}
	s.Devices[1].Segments[0].Active = 1
	return s
}

// TestWritingKeepsUnusualValues does the same with values at which the encoding changes.
func TestWritingKeepsUnusualValues(t *testing.T) {
	checkRoundTrip(t, odd())
}

// TestUnwritableSnapshotsAreRefused tries snapshots that the format has no words for, and a full
// disk.
func TestUnwritableSnapshotsAreRefused(t *testing.T) {
	refused := func(s torch.Snapshot, want string) {
		t.Helper()
		require.EqualError(t, torch.Write(&bytes.Buffer{}, &s), want)
	}
	refused(torch.Snapshot{Devices: []torch.Device{{Ordinal: 1}, {Ordinal: 1}}},
		"snapshot: device 1 in place 1, want rising ordinals from 0 to 4095")
	refused(torch.Snapshot{Devices: []torch.Device{{Ordinal: 4096}}},
		"snapshot: device 4096 in place 0, want rising ordinals from 0 to 4095")
	refused(torch.Snapshot{Settings: []torch.Setting{{Key: "a", Value: "off"}}},
		`snapshot: setting a: "off" is not a number, True, False, None or JSON`)
	refused(torch.Snapshot{Settings: []torch.Setting{{Key: "a", Value: "[1"}}},
		`snapshot: setting a: "[1" is not JSON: EOF`)
	require.ErrorIs(t, torch.Write(full{}, odd()), errFull)
}

var errFull = errors.New("disk full")

type full struct{}

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, errFull }

// TestWritingAnEntryTakesNoMemory writes histories of different lengths.
func TestWritingAnEntryTakesNoMemory(t *testing.T) {
	long := func(n int) *torch.Snapshot {
		s := &torch.Snapshot{Devices: make([]torch.Device, 1)}
		in := torch.NewInterner(s)
		stack := in.Stack([]uint32{in.Frame(torch.Frame{File: in.String("f"), Function: in.String("g"), Line: 7})})
		h := &s.Devices[0].History
		h.Streams, h.Pools = []int64{0, 1 << 40}, [][2]uint64{{}, {0, 3}}
		for i := range n {
			h.Append(torch.Entry{
				Action: torch.Action(i % 3), Addr: 1<<46 + uint64(i/3)<<9, Size: uint64(i % 1000 << 10), Time: 1 << 50,
				Stack: stack, Stream: uint16(i % 2), Pool: uint16(i % 2),
			})
		}
		return s
	}
	allocs := func(n int) float64 {
		s := long(n)
		return testing.AllocsPerRun(3, func() { require.NoError(t, torch.Write(io.Discard, s)) })
	}
	require.InDelta(t, allocs(10_000), allocs(20_000), 10)
}
