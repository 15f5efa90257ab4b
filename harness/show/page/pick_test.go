package page_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
)

// TestPickedBucketsMatchACoarserPicture draws in fine buckets, makes them coarse, and draws
// coarsely.
func TestPickedBucketsMatchACoarserPicture(t *testing.T) {
	fine := tiny
	fine.Buckets = 1024
	forAll(t, fine, func(t *testing.T, c *drawn) {
		coarse := *c
		coarse.o = tiny
		require.True(t, coarse.draw(t))
		p := c.picture.Grid.Coarse(tiny.Buckets)
		trace, run := c.picture.Pick(p), c.run.Pick(p)
		require.Equal(t, coarse.picture.Grid, trace.Grid)
		require.Equal(t, coarse.picture.Bound, trace.Bound)
		require.Equal(t, coarse.picture.Times, trace.Times)
		require.Equal(t, coarse.run.Calls, run.Calls)
		require.Equal(t, coarse.run.OOMs, run.OOMs)
		require.InDeltaSlice(t, coarse.run.DeviceTime, run.DeviceTime, 1)
		require.Equal(t, coarse.run.Curves.Reserved, run.Curves.Reserved)
		require.Equal(t, coarse.run.Curves.Requested, run.Curves.Requested)
		require.Equal(t, coarse.run.Curves.Active, run.Curves.Active)
	})
}

// TestEachReceivesEveryBlock compares the blocks passed to Each with a picture without a limit.
func TestEachReceivesEveryBlock(t *testing.T) {
	all := tiny
	all.Blocks = 10_000
	forAll(t, all, func(t *testing.T, c *drawn) {
		var told []page.Rect
		c.o.Blocks = 1
		c.o.Each = func(r *page.Rect) { told = append(told, *r) }
		want := c.run.Rects
		require.True(t, c.draw(t))
		require.ElementsMatch(t, want, told)
	})
}

// TestAWalkerReturnsTheRecordedSnapshots asks for single snapshots and for all at once.
func TestAWalkerReturnsTheRecordedSnapshots(t *testing.T) {
	o := tiny
	o.Events = []int{0, 17, 300, 699}
	forAll(t, o, func(t *testing.T, c *drawn) {
		p, err := replay.Prepare(t.Context(), c.trace)
		require.NoError(t, err)
		w := c.picture.Walker(p, c.setup, c.device, c.o)
		defer w.Close()
		for _, want := range c.run.Snapshots {
			got, err := w.To(context.Background(), want.Event)
			require.NoError(t, err)
			got.Labels = want.Labels
			require.Equal(t, want, *got)
		}
		_, err = w.To(context.Background(), c.picture.Grid.Events)
		require.Error(t, err)
	})
}
