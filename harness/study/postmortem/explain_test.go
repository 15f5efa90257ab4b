package postmortem_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
)

const mib = device.MiB

// heap builds regions of a text: a region a line of chunks of so many MiB, each with a letter for
// what it is: f free, l live, p pending, c set aside, s slack, u unmapped. A region may begin with
// "s7:" for stream 7, "p3:" for private pool 3, "k1:" for class 1.
func heap(t *testing.T, text string, free *device.Size) *postmortem.Heap {
	t.Helper()
	h := &postmortem.Heap{DeviceFree: free}
	base, tag := device.Addr(1<<30), uint64(1)
	for line := range strings.Lines(text) {
		c := alloc.Chunk{Region: base}
		at := base
		for _, word := range strings.Fields(line) {
			n := number(word[1:])
			if strings.HasSuffix(word, ":") {
				switch word[0] {
				case 's':
					c.Stream = device.Stream(n)
				case 'p':
					c.Pool = alloc.PoolID(n)
				case 'k':
					c.Class = int32(n)
				}
				continue
			}
			x := c
			x.Addr, x.Size = at, device.Size(n)*mib
			x.State = map[byte]alloc.State{'f': alloc.Free, 'l': alloc.Live, 'p': alloc.Pending, 'c': alloc.Cached,
				's': alloc.Slack, 'u': alloc.Unmapped}[word[0]]
			if x.State == alloc.Live || x.State == alloc.Pending {
				x.Tag, x.Requested = tag, x.Size-mib/4
				tag++
			}
			h.Chunks = append(h.Chunks, x)
			at = x.End()
		}
		base += 1 << 30
	}
	return h
}

// number reads the digits of a word.
func number(s string) (n uint64) {
	for _, r := range strings.TrimSuffix(s, ":") {
		n = 10*n + uint64(r-'0')
	}
	return n
}

// apart serves a request from its own stream and class 0 only, as PyTorch's allocator does.
func apart(need device.Size) postmortem.Need {
	return postmortem.Need{
		Request: alloc.Request{Size: need - 100}, Block: need, Segment: need, Returns: true,
		Fits: func(c alloc.Chunk, r alloc.Request) bool {
			return c.Stream == r.Stream && c.Class == 0 && c.Size >= need
		},
	}
}

// TestCauses has a heap for each cause, worked out by hand.
func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		heap    string
		device  device.Size
		need    device.Size
		cause   postmortem.Cause
		verdict string // part of it
	}{
		"scattered": {"l4 f6 l4 f6\nl8 f4 l8", 2 * mib, 10 * mib, postmortem.CauseScattered,
			"16.00 MiB free in 3 holes, the largest 6.00 MiB, and 2.00 MiB left"},
		"stream": {"l4 f4\ns7: l1 f20", 2 * mib, 10 * mib, postmortem.CauseStream, "a hole of 20.00 MiB would suffice, but " +
			"belongs to another stream"},
		"streams": {"l4 f4\ns7: l1 f6 l1", 1 * mib, 10 * mib, postmortem.CauseStream, "6.00 MiB belong to other streams"},
		"pending": {"l4 f4 p8 f1 l2", 0, 10 * mib, postmortem.CausePending, "8.00 MiB are pending"},
		"pool": {"l4 f4\np3: f20", 0, 10 * mib, postmortem.CausePool, "a hole of 20.00 MiB would suffice, but lies in a " +
			"private pool"},
		"kind": {"l4 f4\nk1: l1 f20", 0, 10 * mib, postmortem.CauseKind, "a hole of 20.00 MiB would suffice"},
		"rounding": {"l4 l4 l4 l4 f4\nl1 f5", 0, 10 * mib, postmortem.CauseRounding, "is 1.00 MiB too small, and " +
			"rounding of live blocks takes 1.25 MiB"},
		"too little": {"l4 f4\nl2 f1", 3 * mib, 10 * mib, postmortem.CauseTooLittle, "all free memory joined is " +
			"2.00 MiB too small"},
		"again":       {"l4 f12", 3 * mib, 10 * mib, postmortem.CauseAgain, "a free chunk of 12.00 MiB would serve"},
		"device":      {"l4 f4", 13 * mib, 10 * mib, postmortem.CauseDevice, "the device has 13.00 MiB"},
		"set aside":   {"l4 f4 c6 l1", 0, 10 * mib, postmortem.CauseApart, "adjacent free chunks"},
		"nothing":     {"", 3 * mib, 10 * mib, postmortem.CauseTooLittle, "7.00 MiB too small"},
		"empty goes":  {"f4\nl4", 6 * mib, 10 * mib, postmortem.CauseDevice, "the device has 10.00 MiB"},
		"empty stays": {"p3: f4\nl4 f1", 6 * mib, 10 * mib, postmortem.CausePool, "4.00 MiB lie in a private pool"},
	} {
		t.Run(name, func(t *testing.T) {
			r := postmortem.Explain(heap(t, c.heap, &c.device), apart(c.need), nil)
			require.Equal(t, c.cause, r.Cause, r.Verdict)
			require.Contains(t, r.Verdict, c.verdict)
		})
	}
}

func TestSegmentsLargerThanTheBlock(t *testing.T) {
	free := 15 * mib
	n := apart(10 * mib)
	n.Segment = 20 * mib
	r := postmortem.Explain(heap(t, "l4 f4", &free), n, nil)
	require.Equal(t, postmortem.CauseSegment, r.Cause)
	require.Equal(t, "the device has 15.00 MiB left, enough for the block, but 20.00 MiB are requested from it", r.Verdict)
}

// TestFigures counts a heap that has everything.
func TestFigures(t *testing.T) {
	free := 2 * mib
	h := heap(t, "l4 f6 l4 f6 p1\ns7: l8 f4\np3: f3 l1\nk1: f2 l1\nf5\ns1 u9 l1", &free)
	who := func(tag uint64) postmortem.Owner {
		return postmortem.Owner{Known: true, ID: tag, Age: int(10 * tag), Tag: []string{"odd", "even"}[(tag+1)%2]}
	}
	r := postmortem.Explain(h, apart(100*mib), who)
	require.Equal(t, 47*mib, r.Reserved)
	require.Equal(t, postmortem.Amount{Count: 6, Bytes: 19 * mib}, r.Live)
	require.Equal(t, 6*mib/4, r.Loss)
	require.Equal(t, postmortem.Amount{Count: 6, Bytes: 26 * mib}, r.Free)
	require.Equal(t, 6*mib, r.Largest)
	require.InDelta(t, 1-6./26, r.External, 1e-12)
	require.Equal(t, postmortem.Amount{Count: 3, Bytes: 17 * mib}, r.Usable)
	require.Equal(t, postmortem.Amount{Count: 1, Bytes: 2 * mib}, r.OtherKind)
	require.Equal(t, postmortem.Amount{Count: 1, Bytes: 1 * mib}, r.Pending)
	require.Equal(t, mib, r.Lost)
	require.Equal(t, postmortem.Amount{Count: 1, Bytes: 5 * mib}, r.Empty)
	require.Equal(t, postmortem.Amount{Count: 5, Bytes: 21 * mib}, r.Pinned)
	require.Equal(t, []postmortem.Share{
		{Stream: 0, Reserved: 31 * mib, Free: 19 * mib, Largest: 6 * mib, Usable: 17 * mib, Pending: mib},
		{Stream: 7, Reserved: 12 * mib, Free: 4 * mib, Largest: 4 * mib},
	}, r.Streams)
	require.Equal(t, []postmortem.Share{{Pool: 3, Reserved: 4 * mib, Free: 3 * mib, Largest: 3 * mib}}, r.Pools)
	// Odd are blocks 1 and 3 in the first region and 5 in the pool, even are 2 in the first, 4 and
	// 6 on their own.
	require.Len(t, r.Pins, 2)
	even, odd := r.Pins[0], r.Pins[1]
	require.Equal(t, []string{"even", "odd"}, []string{even.Tag, odd.Tag})
	require.Equal(t, []device.Size{18 * mib, 15 * mib}, []device.Size{even.Pinned, odd.Pinned})
	require.Equal(t, []device.Size{6 * mib, 3 * mib}, []device.Size{even.PinnedAlone, odd.PinnedAlone})
	require.Equal(t, []int{60, 50}, []int{even.Oldest, odd.Oldest})
}

func TestTextIsShort(t *testing.T) {
	free := 2 * mib
	var lines strings.Builder
	for range 30 {
		lines.WriteString("s7: l4 f6 l4\np3: l1 f2\ns9: l8 f4\nl1 f1 l1 f1\nf2\nl1 c1 p1\n")
	}
	h := heap(t, lines.String(), &free)
	for i := range h.Chunks {
		h.Chunks[i].Stream += device.Stream(i % 11)
		if h.Chunks[i].Pool != 0 {
			h.Chunks[i].Pool += alloc.PoolID(i % 5)
		}
	}
	who := func(tag uint64) postmortem.Owner {
		return postmortem.Owner{Known: true, ID: tag, Stack: []string{string(rune('a'+tag%20)) + ".py:1 f", "main"}}
	}
	var text bytes.Buffer
	require.NoError(t, report.Postmortem(&text, postmortem.Explain(h, apart(9*mib), who)))
	require.LessOrEqual(t, strings.Count(text.String(), "\n"), 25, text.String())
	t.Log(text.String())
}

// TestPlacesOfPythonAreNamed skips what lies below the program: the allocator and PyTorch's own
// code.
func TestPlacesOfPythonAreNamed(t *testing.T) {
	free := device.Size(0)
	who := func(uint64) postmortem.Owner {
		return postmortem.Owner{Known: true, Stack: []string{"??:0 torch::unwind", "/a/model.py:7 forward",
			"/a/train.py:9 step"}}
	}
	var text strings.Builder
	require.NoError(t, report.Postmortem(&text, postmortem.Explain(heap(t, "l4 f4", &free), apart(10*mib), who)))
	require.Contains(t, text.String(), "in 1 region: /a/model.py:7 forward < /a/train.py:9 step\n")
}
