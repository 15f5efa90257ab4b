package page_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// ample keeps everything of a short trace.
var ample = page.Options{Buckets: 1000, Rows: 7, Columns: 9}

// active returns the bytes of active blocks after each event, by the strategy's own count.
func (c *drawn) active(t *testing.T) (bytes []float64) {
	t.Helper()
	c.observe(t, func(o replay.Observation) { bytes = append(bytes, float64(o.Strategy.Stats().Active)) })
	return bytes
}

func sumOf[T float32 | float64](list []T) (n float64) {
	for _, v := range list {
		n += float64(v)
	}
	return n
}

// TestRectanglesAreTheMemoryInUse compares the sum of the rectangles at every event with the active
// bytes of the strategy, and checks that rectangles are disjoint.
func TestRectanglesAreTheMemoryInUse(t *testing.T) {
	forAll(t, ample, func(t *testing.T, c *drawn) {
		require.Zero(t, c.run.RectsOmitted)
		got := make([]float64, c.picture.Grid.Events)
		for i, r := range c.run.Rects {
			for e := int(r.Born); e < min(int(r.Reclaimed), len(got)); e++ {
				got[e] += float64(r.Size)
			}
			require.GreaterOrEqual(t, r.Freed, r.Born)
			require.GreaterOrEqual(t, r.Reclaimed, r.Freed)
			for _, other := range c.run.Rects[i+1:] {
				apart := other.Born >= r.Reclaimed || r.Born >= other.Reclaimed ||
					other.Addr >= r.Addr.Add(r.Size) || r.Addr >= other.Addr.Add(other.Size)
				require.True(t, apart, "%+v and %+v", r, other)
			}
		}
		require.Equal(t, c.active(t), got)
	})
}

// cellError is the largest relative rounding error of a cell of a raster, or of a sum of a few: a
// float32 has 24 bits.
const cellError = 1.0 / (1 << 23)

// TestTheRasterHoldsEveryByte compares the raster with the same sum, and every cell with its
// bounds.
func TestTheRasterHoldsEveryByte(t *testing.T) {
	forAll(t, tiny, func(t *testing.T, c *drawn) {
		r := c.run.Raster
		all := sumOf(c.active(t))
		require.InDelta(t, all, sumOf(r.Cells), 1+all*cellError)
		for i := range r.Cells {
			s := r.Share(i/r.Rows, i%r.Rows, c.picture.Grid.Events, c.run.Space.Bytes)
			require.GreaterOrEqual(t, s, 0.0)
			require.LessOrEqual(t, s, 1+2*cellError)
		}
	})
}

// weightOf returns the byte-events of rectangles.
func weightOf(list []page.Rect, events int) (n float64) {
	for _, r := range list {
		n += float64(r.Size) * float64(min(int(r.Reclaimed), events)-int(r.Born))
	}
	return n
}

// TestKeptAndOmittedBlocksAddUp checks the limits, and that kept and omitted blocks are all blocks.
func TestKeptAndOmittedBlocksAddUp(t *testing.T) {
	forAll(t, tiny, func(t *testing.T, c *drawn) {
		all := *c
		all.o = ample
		all.o.Buckets = tiny.Buckets // regions are sampled once per bucket
		require.True(t, all.draw(t))
		run, events := c.run, c.picture.Grid.Events
		require.LessOrEqual(t, len(run.Rects), tiny.Blocks)
		require.LessOrEqual(t, len(run.Regions), tiny.Regions)
		require.Equal(t, len(all.run.Rects), len(run.Rects)+run.RectsOmitted.Count)
		require.Equal(t, len(all.run.Regions), len(run.Regions)+run.RegionsOmitted.Count)
		require.InDelta(t, weightOf(all.run.Rects, events), weightOf(run.Rects, events)+run.RectsOmitted.ByteEvents, 1)
		require.True(t, slices.IsSortedFunc(run.Rects, func(a, b page.Rect) int { return int(a.Born) - int(b.Born) }))
		least := math.Inf(1)
		for _, r := range run.Rects {
			least = min(least, weightOf([]page.Rect{r}, events))
		}
		heavier := 0
		for _, r := range all.run.Rects {
			if weightOf([]page.Rect{r}, events) > least {
				heavier++
			}
		}
		require.LessOrEqual(t, heavier, len(run.Rects), "the heaviest are kept")
		require.Equal(t, all.run.Space.Bytes, run.Space.Bytes)
	})
}

// TestRegionsCoverReservedMemory adds up the regions of every event.
func TestRegionsCoverReservedMemory(t *testing.T) {
	forAll(t, ample, func(t *testing.T, c *drawn) {
		got := make([]float64, c.picture.Grid.Events)
		for _, s := range c.run.Regions {
			for e := int(s.Born); e < min(int(s.Released), len(got)); e++ {
				got[e] += float64(s.Size)
			}
		}
		i := 0
		c.observe(t, func(o replay.Observation) {
			held := device.Size(0)
			for chunk := range o.Strategy.Walk {
				if chunk.State.Held() {
					held += chunk.Size
				}
			}
			// What a strategy has forgotten, or lost to the rounding of the device, is held
			// besides.
			require.GreaterOrEqual(t, got[i], float64(held), "event %d", i)
			require.LessOrEqual(t, got[i], float64(o.Faults.Usage().Held), "event %d", i)
			i++
		})
	})
}

// TestAdjacentRegionsStaySeparate compares the regions of held memory with those of a walk after
// every event: regions that touch are two, and the pages of one region are one.
func TestAdjacentRegionsStaySeparate(t *testing.T) {
	touched := 0
	forAll(t, ample, func(t *testing.T, c *drawn) {
		i := 0
		c.observe(t, func(o replay.Observation) {
			got, want := map[device.Addr]bool{}, map[device.Addr]bool{}
			for _, s := range c.run.Regions {
				if int(s.Born) <= i && i < int(s.Released) {
					got[s.Region] = true
				}
			}
			end := device.Addr(0)
			for chunk := range o.Strategy.Walk {
				if !chunk.State.Held() {
					continue
				}
				if !want[chunk.Region] && chunk.Addr == end {
					touched++
				}
				want[chunk.Region], end = true, chunk.End()
			}
			// What a strategy has forgotten is held besides.
			for region := range want {
				require.Contains(t, got, region, "event %d", i)
			}
			i++
		})
	})
	require.Positive(t, touched)
}

// TestSnapshotsMatchTheWalk compares each snapshot with a walk at that event.
func TestSnapshotsMatchTheWalk(t *testing.T) {
	o := ample
	o.Events = []int{3, 100, 10_000}
	forAll(t, o, func(t *testing.T, c *drawn) {
		next := 0
		c.observe(t, func(o replay.Observation) {
			if next == len(c.run.Snapshots) || c.run.Snapshots[next].Event != o.Event {
				return
			}
			at := c.run.Snapshots[next]
			next++
			var want, got []alloc.Chunk
			for chunk := range o.Strategy.Walk {
				want = append(want, alloc.Chunk{
					Region: chunk.Region, Addr: chunk.Addr, Size: chunk.Size, Requested: chunk.Requested,
					State: chunk.State, Class: chunk.Class,
				})
			}
			for _, x := range at.Chunks {
				got = append(got, alloc.Chunk{
					Region: at.Regions[x.Region].Addr, Addr: x.Addr, Size: x.Size, Requested: x.Requested,
					State: x.State, Class: x.Class,
				})
			}
			require.Zero(t, at.ChunksOmitted)
			require.Equal(t, want, got)
		})
		require.Equal(t, len(c.run.Snapshots), next)
		chosen := slices.IndexFunc(c.run.Snapshots, func(x page.Snapshot) bool { return x.Event == 100 })
		require.Contains(t, c.run.Snapshots[chosen].Labels, "chosen")
		last := c.run.Snapshots[next-1]
		require.Equal(t, c.picture.Grid.Events-1, last.Event)
		require.Contains(t, last.Labels, "end")
	})
}

// TestThinnerPicturesKeepPeaks thins pictures as far as that goes.
func TestThinnerPicturesKeepPeaks(t *testing.T) {
	forAll(t, ample, func(t *testing.T, c *drawn) {
		trace, runs := c.picture, []*page.Picture{c.run, nil}
		for range 12 {
			trace, runs = trace.Thinner(runs)
			run := runs[0]
			require.Nil(t, runs[1])
			for k, curve := range c.run.Curves.All() {
				want, got := highest(*curve), highest(*run.Curves.All()[k])
				require.Equal(t, want, got)
			}
			require.Equal(t, c.run.Peaks, run.Peaks)
			require.Equal(t, c.run.Failed, run.Failed)
			for i, f := range run.Failures {
				require.Equal(t, c.run.Failures[i].Event, f.Event)
				require.Less(t, int(f.Tag), len(trace.Tags))
			}
			ooms := uint32(0)
			for _, n := range run.OOMs {
				ooms += n
			}
			require.EqualValues(t, c.run.Result.OOMs, ooms)
			require.Len(t, run.Curves.Reserved.Max, trace.Grid.Len())
			require.Len(t, trace.Bound, trace.Grid.Len())
			require.Equal(t, len(c.run.Rects), len(run.Rects)+run.RectsOmitted.Count)
			all := sumOf(c.run.Raster.Cells)
			require.InDelta(t, all, sumOf(run.Raster.Cells), 1+all*cellError)
			require.Len(t, run.Snapshots, len(c.run.Snapshots))
		}
		require.LessOrEqual(t, trace.Grid.Len(), 128)
		require.LessOrEqual(t, len(runs[0].Rects), 64)
	})
}

// highest returns the highest value of a curve.
func highest(c page.Curve) float64 {
	most := math.Inf(-1)
	for _, v := range c.Max {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	return most
}

// TestRegionsHaveTheStreamOfTheirBlocks draws the regions of a trace with one stream, and of a
// trace with two.
func TestRegionsHaveTheStreamOfTheirBlocks(t *testing.T) {
	for text, want := range map[string]uint16{
		"a 1 1MiB stream=7\nf 1\na 2 1MiB stream=7\n": 0,
		"a 1 1MiB stream=7\na 2 1MiB stream=9\n":      page.OtherStream,
	} {
		tr, err := trace.Read(strings.NewReader(text), "t.trace", trace.Options{})
		require.NoError(t, err)
		s, err := strategies.All().Lookup("bfc", nil)
		require.NoError(t, err)
		c := &drawn{trace: tr, setup: s.ForCapacity(8 * device.MiB), capacity: 8 * device.MiB}
		require.True(t, c.draw(t))
		require.Len(t, c.run.Regions, 1)
		require.Equal(t, want, c.run.Regions[0].Stream)
		require.EqualValues(t, page.Never, c.run.Regions[0].Released)
	}
}
