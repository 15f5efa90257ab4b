package strategies_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// drawingMark finds the drawings of a page: a comment of HTML, then a code block.
//
//	<!-- heap: SCALE PRESET [CONFIGURATION] [capacity=SIZE] -->
//
// SCALE is the bytes that one character stands for, or the word chunks. CONFIGURATION is a JSON
// object without spaces. SIZE is the memory of the simulated device.
var drawingMark = regexp.MustCompile("(?s)<!-- heap: ([^\n]*) -->\n```\n(.*?)```\n")

// TestDrawings holds the drawings of heaps in docs/ to what the strategies do. A line of a drawing
// is an event of a trace, two spaces or more, and the regions after the event, which the test
// writes:
//
//	go test ./strategies -run TestDrawings -rewrite
//
// In a scale of bytes, each character shows what covers the first byte that it stands for: the ID
// of a live block (1 to 9, then A to Z), + for bytes of the block beyond the request, p for a block
// that waits for another stream, c for a slot in a magazine, a dot for free memory, _ for addresses
// without memory, x for memory that is never granted, = for memory that is mapped here a second
// time. Two spaces separate regions; unmapped addresses at the end of a region are left out. With
// the word chunks, each chunk is written as what it is, its size, and its class in brackets, such
// as "free 3KiB (3)".
func TestDrawings(t *testing.T) {
	pages := 0
	require.NoError(t, filepath.WalkDir(filepath.Join("..", "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil || !drawingMark.Match(page) {
			return err
		}
		pages++
		t.Run(filepath.Base(path), func(t *testing.T) {
			drawn := drawingMark.ReplaceAllFunc(page, func(part []byte) []byte {
				found := drawingMark.FindSubmatch(part)
				return fmt.Appendf(nil, "<!-- heap: %s -->\n```\n%s```\n", found[1], drawing(t, string(found[1]), string(found[2])))
			})
			if *rewrite {
				require.NoError(t, os.WriteFile(path, drawn, 0o644))
				return
			}
			require.Equal(t, string(page), string(drawn), "go test ./strategies -run TestDrawings -rewrite")
		})
		return nil
	}))
	require.NotZero(t, pages, "pages with drawings")
}

// drawing returns the lines of a drawing with the regions after each event.
func drawing(t *testing.T, head, lines string) string {
	t.Helper()
	sketch, setup, dev := sketchOf(t, head)
	var events []string
	width := 0
	for line := range strings.Lines(lines) {
		event, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		events = append(events, event)
		width = max(width, len(event))
	}
	tr, err := trace.Read(strings.NewReader(strings.Join(events, "\n")), "drawing", trace.Options{})
	require.NoError(t, err, "%s", head)
	require.Len(t, tr.Events, len(events), "%s: every line is one event", head)
	var b strings.Builder
	_, err = replay.Run(tr, setup, dev, replay.Options{Observe: func(o replay.Observation) error {
		if o.Event < 0 || o.Event >= len(events) {
			return o.Err
		}
		if o.Request.Size > 0 {
			sketch.ids[o.Block.Addr] = o.Request.ID
		}
		text := strings.Join(sketch.regions(o.Strategy), "  ")
		if o.Err != nil {
			text += "  " + reason(o.Err)
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %s", width, events[o.Event], text), " ") + "\n")
		return nil
	}})
	require.NoError(t, err, "%s", head)
	return b.String()
}

// reason returns why a call was refused, without what differs between strategies.
func reason(err error) string {
	if errors.Is(err, alloc.ErrOutOfMemory) {
		return "out of memory"
	}
	return "refused"
}

// sketch draws heaps.
type sketch struct {
	scale device.Size            // bytes of a character; 0 for chunks in words
	ids   map[device.Addr]uint64 // IDs of the blocks granted last at each address
}

// sketchOf returns what the first line of a drawing asks for.
func sketchOf(t *testing.T, head string) (*sketch, setting.Setup, *sim.Device) {
	t.Helper()
	words := strings.Fields(head)
	require.GreaterOrEqual(t, len(words), 2, "%q: want a scale and a preset", head)
	s := &sketch{ids: map[device.Addr]uint64{}}
	var err error
	if words[0] != "chunks" {
		s.scale, err = device.ParseSize(words[0])
		require.NoError(t, err, "%q", head)
		require.NotZero(t, s.scale, "%q: want bytes for each character", head)
	}
	var config json.RawMessage
	var gpu sim.Config
	for _, word := range words[2:] {
		size, isCapacity := strings.CutPrefix(word, "capacity=")
		if isCapacity {
			gpu.Capacity, err = device.ParseSize(size)
			require.NoError(t, err, "%q", head)
		} else {
			config = json.RawMessage(word)
		}
	}
	setup, err := strategies.All().Lookup(words[1], config)
	require.NoError(t, err, "%q", head)
	dev, err := sim.New(gpu)
	require.NoError(t, err, "%q", head)
	return s, setup, dev
}

// regions returns the text of each region.
func (s *sketch) regions(strategy alloc.Strategy) (texts []string) {
	var chunks []alloc.Chunk
	draw := func() {
		for len(chunks) > 0 && chunks[len(chunks)-1].State == alloc.Unmapped {
			chunks = chunks[:len(chunks)-1]
		}
		if len(chunks) > 0 {
			texts = append(texts, s.region(chunks))
		}
		chunks = nil
	}
	for c := range strategy.Walk {
		if len(chunks) > 0 && chunks[0].Region != c.Region {
			draw()
		}
		chunks = append(chunks, c)
	}
	draw()
	return texts
}

// region draws the chunks of one region.
func (s *sketch) region(chunks []alloc.Chunk) string {
	if s.scale == 0 {
		var words []string
		for _, c := range chunks {
			words = append(words, s.words(c))
		}
		return "[" + strings.Join(words, " | ") + "]"
	}
	var b strings.Builder
	at := chunks[0].Addr
	for _, c := range chunks {
		for ; at < c.End(); at = at.Add(s.scale) {
			b.WriteByte(s.sign(c, at))
		}
	}
	return b.String()
}

// sign returns the character of a place in a chunk.
func (s *sketch) sign(c alloc.Chunk, at device.Addr) byte {
	const signs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case c.State != alloc.Live:
		return map[alloc.State]byte{alloc.Free: '.', alloc.Pending: 'p', alloc.Cached: 'c', alloc.Unmapped: '_',
			alloc.Slack: 'x', alloc.Aliased: '='}[c.State]
	case at >= c.Addr.Add(c.Requested):
		return '+'
	}
	return signs[s.ids[c.Addr]%uint64(len(signs))]
}

// words returns what a chunk is, its size and its class.
func (s *sketch) words(c alloc.Chunk) string {
	text := c.State.String()
	if c.State == alloc.Live || c.State == alloc.Pending {
		text = fmt.Sprint(s.ids[c.Addr])
		if c.State == alloc.Pending {
			text += " pending"
		}
	}
	text += " " + c.Size.String()
	if c.Class != alloc.NoClass {
		text += fmt.Sprintf(" (%d)", c.Class)
	}
	return text
}
