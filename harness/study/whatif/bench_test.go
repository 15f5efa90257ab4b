package whatif_test

import (
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// BenchmarkQuickGrid asks a trace of a million events with the quick grid, on one core, and reports
// what that takes in replays: a replay is the mean of one through each setting of the grid,
// counting only, which is done before and after. docs/whatif.md says how to run it.
func BenchmarkQuickGrid(b *testing.B) {
	shape, err := workload.Lookup("w1")
	require.NoError(b, err)
	p := shape.Default
	p.Pairs = 500_000
	made, err := shape.New(p)
	require.NoError(b, err)
	t, err := made.Trace()
	require.NoError(b, err)
	grid := quick(b)
	prepared, err := replay.Prepare(b.Context(), t)
	require.NoError(b, err)
	at := compare.Ample(prepared.LowerBound())
	oneEach := func() time.Duration {
		start := time.Now()
		for _, s := range grid {
			dev, err := sim.New(sim.Config{Capacity: at})
			require.NoError(b, err)
			_, err = prepared.Run(s.ForCapacity(at), dev, replay.Options{})
			require.NoError(b, err)
		}
		return time.Since(start) / time.Duration(len(grid))
	}
	var replays, share float64
	for b.Loop() {
		before := oneEach()
		start := time.Now()
		w, err := whatif.Survey(t)
		require.NoError(b, err)
		r, err := whatif.Search(b.Context(), w, whatif.Recorded{}, grid, whatif.Options{Workers: 1})
		require.NoError(b, err)
		took := time.Since(start)
		replays += float64(took) / (float64(before+oneEach()) / 2)
		share += float64(r.Replayed) / float64(len(t.Events))
	}
	b.ReportMetric(replays/float64(b.N), "replays")
	b.ReportMetric(share/float64(b.N), "counted-replays")
}

// BenchmarkSharedPlacements reports how many replays the settings of the quick grid would take on
// each recorded trace if settings shared every event up to their first different placement: the
// nodes of a prefix tree over their placements, by the allocations of the trace. The device is
// ample, and settings that reduce to one are one. docs/decisions/0047 quotes it.
func BenchmarkSharedPlacements(b *testing.B) {
	for _, name := range workload.RecordingNames() {
		b.Run(name, func(b *testing.B) {
			tr, err := workload.OpenRecording(name)
			require.NoError(b, err)
			w, err := whatif.Survey(tr)
			require.NoError(b, err)
			p, err := replay.Prepare(b.Context(), w)
			require.NoError(b, err)
			at := compare.Ample(p.LowerBound())
			for b.Loop() {
				points, nodes, longest := map[string]bool{}, map[node]bool{}, 0
				for _, s := range quick(b) {
					family, _, _ := strings.Cut(s.Name, ":")
					key := family + encoded(b, s.Reduced(w.Demand))
					if points[key] {
						continue
					}
					points[key] = true
					dev, err := sim.New(sim.Config{Capacity: at})
					require.NoError(b, err)
					path := &path{nodes: nodes}
					_, err = p.Run(s.ForCapacity(at), dev, replay.Options{Placements: path})
					require.NoError(b, err)
					longest = max(longest, path.at.depth)
				}
				b.ReportMetric(float64(len(points)), "settings")
				b.ReportMetric(float64(len(nodes))/float64(longest), "replays")
			}
		})
	}
}

// node is a prefix of the placements of a replay.
type node struct {
	depth int    // lines
	hash  uint64 // of the lines
}

// path adds the prefixes of the placements that are written to it to a set.
type path struct {
	nodes map[node]bool
	at    node
}

func (p *path) Write(line []byte) (int, error) {
	h := fnv.New64a()
	for i := range 8 {
		h.Write([]byte{byte(p.at.hash >> (8 * i))})
	}
	h.Write(line)
	p.at = node{p.at.depth + 1, h.Sum64()}
	p.nodes[p.at] = true
	return len(line), nil
}
