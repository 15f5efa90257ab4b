package page

// Budget returns how much of each of so many runs is kept, so that all fit into one page.
func Budget(runs int) Options {
	runs = max(runs, 1)
	// Up to eight runs are looked at block by block; what they have together still fits.
	few := 0
	if runs <= 8 {
		few = min(60_000, 100_000/runs)
	}
	o := Options{Buckets: 4096, Blocks: 60_000, Regions: 8192, Rows: 256, Columns: 512, Chunks: 20_000, Ranges: 1024, Failures: 200}
	for ; runs > 1; runs = (runs + 1) / 2 {
		o.Blocks /= 2
		o.Regions = max(o.Regions/2, 256)
		o.Ranges, o.Failures = max(o.Ranges/2, 64), max(o.Failures/2, 25)
		o.Chunks = max(o.Chunks/2, 512)
	}
	o.Blocks = max(o.Blocks, few)
	return o
}
