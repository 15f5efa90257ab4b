package page

import (
	"cmp"

	"github.com/vramyard/vramyard/harness/replay"
)

// Options bound what is kept of each run. The zero value takes the defaults.
type Options struct {
	Buckets  int // of the axis of events; default 4096
	Blocks   int // rectangles of blocks; default 60,000
	Regions  int // rectangles of regions; default 8,192
	Rows     int // of the raster; default 256
	Columns  int // of the raster; default 512
	Chunks   int // at each instant; default 20,000
	Ranges   int // of addresses; where there are more, the smallest gaps count as held; default 1024
	Failures int // that are told one by one; default 200

	StopAtOOM bool          // end at the first request that finds no memory
	FreeAt    replay.FreeAt // see [replay.Options]
	Latency   bool          // replay once more for the latency of single calls
	Events    []int         // events whose instants are wanted beside the peaks

	// called with every block, those that die in the order of their deaths, then the others; nil for
	// none
	Each func(r *Rect)
	Step func(event int) error // called now and then with the number of an event; its error ends the replay; nil for none
}

// Budget returns how much of each of so many runs is kept, so that all fit into one page.
func Budget(runs int) Options {
	runs = max(runs, 1)
	// Up to eight runs are looked at block by block; what they have together still fits.
	few := 0
	if runs <= 8 {
		few = min(60_000, 100_000/runs)
	}
	o := Options{Buckets: 4096, Blocks: 60_000, Regions: 8192, Rows: 256, Columns: 512, Chunks: 20_000, Ranges: 1024,
		Failures: 200}
	for ; runs > 1; runs = (runs + 1) / 2 {
		o.Blocks /= 2
		o.Regions = max(o.Regions/2, 256)
		o.Ranges, o.Failures = max(o.Ranges/2, 64), max(o.Failures/2, 25)
		o.Chunks = max(o.Chunks/2, 512)
	}
	o.Blocks = max(o.Blocks, few)
	return o
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.Buckets = cmp.Or(o.Buckets, 4096)
	o.Blocks = cmp.Or(o.Blocks, 60_000)
	o.Regions = cmp.Or(o.Regions, 8192)
	o.Rows = cmp.Or(o.Rows, 256)
	o.Columns = cmp.Or(o.Columns, 512)
	o.Chunks = cmp.Or(o.Chunks, 20_000)
	o.Ranges = cmp.Or(o.Ranges, 1024)
	o.Failures = cmp.Or(o.Failures, 200)
	return o
}

// stepEvents is how many events lie between two calls of Options.Step.
const stepEvents = 1 << 14

// step calls Step if it is due at an event.
func (o *Options) step(event int) error {
	if o.Step == nil || event%stepEvents != 0 {
		return nil
	}
	return o.Step(event)
}
