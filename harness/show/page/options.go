package page

import (
	"cmp"

	"github.com/vramyard/vramyard/harness/replay"
)

// Options limit how much of each run is kept. Zero fields take their defaults.
type Options struct {
	Buckets  int // of the event axis; default 4096
	Blocks   int // block rectangles; default 60,000
	Regions  int // region rectangles; default 8,192
	Rows     int // of the raster; default 256
	Columns  int // of the raster; default 512
	Chunks   int // in each snapshot; default 20,000
	Ranges   int // address ranges; beyond it the smallest gaps count as reserved; default 1024
	Failures int // failures kept individually; default 200

	StopAtOOM bool          // stop at the first request that runs out of memory
	FreeAt    replay.FreeAt // see [replay.Options]
	Latency   bool          // replay a third time to measure the latency of calls
	Events    []int         // additional events to take snapshots at

	// called with every block: dying ones in order of death, then the survivors; may be nil
	Each func(r *Rect)
	Step func(event int) error // called every stepEvents events; an error ends the replay; may be nil
}

// Budget returns options for a page with this many runs.
func Budget(runs int) Options {
	runs = max(runs, 1)
	// Up to eight runs keep individual blocks; together they still fit.
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

// withDefaults replaces zero fields by their defaults.
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

// stepEvents is the number of events between calls of Options.Step.
const stepEvents = 1 << 14

// step calls Step if it is due.
func (o *Options) step(event int) error {
	if o.Step == nil || event%stepEvents != 0 {
		return nil
	}
	return o.Step(event)
}
