package strategies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

// pictured is the trace whose peak caching's page shows.
const pictured = "meta_resnet50_b256"

// The picture is rows of this many pixels, a GiB each, with a line of text above each part.
const (
	rowWidth  = 880
	rowHeight = 14
	rowStep   = 18
	textStep  = 24
	perRow    = device.GiB
)

// TestCachingSegments holds the picture of caching's page, what is held when most is live in
// segments of fixed size and in segments that grow, to what the strategy does.
//
//	go test ./strategies -run TestCachingSegments -rewrite
func TestCachingSegments(t *testing.T) {
	if testing.Short() {
		t.Skip("replays a recorded trace")
	}
	tr, err := workload.OpenRecording(pictured)
	require.NoError(t, err)
	p := &picture{}
	for _, conf := range []string{"", "expandable_segments:True"} {
		p.part(conf, heldAtPeak(t, tr, conf))
	}
	drawn := []byte(p.svg())
	path := filepath.Join("..", "docs", "strategies", "caching-segments.svg")
	if *rewrite {
		require.NoError(t, os.WriteFile(path, drawn, 0o644))
		return
	}
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(stored), string(drawn), "go test ./strategies -run TestCachingSegments -rewrite")
}

// heldAtPeak returns the chunks that have memory when most of the trace is live.
func heldAtPeak(t *testing.T, tr *trace.Trace, conf string) (held []alloc.Chunk) {
	setup, err := strategies.All().Lookup("caching", fmt.Appendf(nil, `{"conf":%q}`, conf))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	peak := tr.Info().PeakAt
	_, err = replay.Run(tr, setup, dev, replay.Options{Observe: func(o replay.Observation) error {
		if o.Event == peak {
			for c := range o.Strategy.Walk {
				if c.State.Held() {
					held = append(held, c)
				}
			}
		}
		return nil
	}})
	require.NoError(t, err)
	return held
}

// picture is an SVG that is being drawn from top to bottom.
type picture struct {
	b strings.Builder
	y int // top of the row to come
}

// part draws what is held under a setting: live chunks dark, free ones light, a line where a
// segment begins. Segments lie one after the other, whatever their addresses are.
func (p *picture) part(conf string, held []alloc.Chunk) {
	var total, live device.Size
	segments := map[device.Addr]bool{}
	for _, c := range held {
		segments[c.Region] = true
		total += c.Size
		if c.State == alloc.Live {
			live += c.Size
		}
	}
	if conf == "" {
		conf = "no settings"
	}
	p.y += textStep
	fmt.Fprintf(&p.b, "<text x=\"0\" y=\"%d\">%s: %d segments, %s held, %s of it in live blocks</text>\n", p.y-8, conf,
		len(segments), units.Bytes(total), units.Bytes(live))
	at := device.Size(0)
	for i := 0; i < len(held); { // neighbours of one state in one segment are one bar
		first := i
		n := device.Size(0)
		for ; i < len(held) && held[i].Region == held[first].Region && held[i].State == held[first].State; i++ {
			n += held[i].Size
		}
		class := "free"
		if held[first].State != alloc.Free {
			class = "live"
		}
		p.bar(class, at, n)
		if first == 0 || held[first].Region != held[first-1].Region {
			p.cut(at)
		}
		at += n
	}
	p.y += int((total + perRow - 1) / perRow * rowStep)
}

// bar draws n bytes from the given place on, over as many rows as that takes.
func (p *picture) bar(class string, at, n device.Size) {
	for n > 0 {
		some := min(n, perRow-at%perRow)
		fmt.Fprintf(&p.b, "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/>\n",
			class, pixels(at%perRow), p.y+int(at/perRow)*rowStep, pixels(some), rowHeight)
		at, n = at+some, n-some
	}
}

// cut draws the line where a segment begins.
func (p *picture) cut(at device.Size) {
	fmt.Fprintf(&p.b, "<path d=\"M%.2f %dv%d\"/>\n", pixels(at%perRow), p.y+int(at/perRow)*rowStep-2, rowHeight+4)
}

// pixels returns how wide n bytes are.
func pixels(n device.Size) float64 { return float64(n) * rowWidth / float64(perRow) }

// svg returns the picture.
func (p *picture) svg() string {
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 0 %d %d" font-family="sans-serif" font-size="13">
<style>rect.live{fill:#3b6ea5}rect.free{fill:#d9dee5}path{stroke:#b03a2e;stroke-width:1}</style>
<rect x="-4" width="100%%" height="100%%" fill="#fff"/>
`, rowWidth+8, p.y+8) + p.b.String() + "</svg>\n"
}
