package planted

// The settings of PyTorch's allocator. Memory runs out soon, and the device charges pages as a card does.
const (
	caching64  = `{"capacity":67108864,"round":2097152,"charge":2097152}`
	caching256 = `{"capacity":268435456,"round":2097152,"charge":2097152}`
)

var (
	cachingSmall    = Setting{"caching", `{}`, caching64}
	cachingOld      = Setting{"caching:2.6", `{}`, caching64}
	cachingGrows    = Setting{"caching:expandable", `{}`, caching64}
	cachingSplit    = Setting{"caching", `{"conf":"max_split_size_mb:32,max_non_split_rounding_mb:24"}`, caching256}
	cachingSegments = Setting{"caching", `{"conf":"large_segment_size_mb:12,max_split_size_mb:16"}`, caching256}
	cachingSteps    = Setting{"caching", `{"conf":"roundup_power2_divisions:[1:8,4:2,>:4]"}`, caching64}
	cachingBelow    = Setting{"caching", `{"conf":"roundup_power2_divisions:[4:8,>:0]"}`, caching64}
	cachingLimit    = Setting{"caching", `{"memory_fraction":0.5}`, caching64}
	cachingAges     = Setting{"caching", `{"conf":"garbage_collection_threshold:0.4","memory_fraction":0.9}`, caching64}
	cachingIdle     = Setting{"caching", `{"conf":"garbage_collection_threshold:0.3"}`, caching64}
)

// cachingBugs returns bugs of PyTorch's allocator.
func cachingBugs() []Bug {
	return append(append(cachingSizes(), cachingSegmentsBugs()...), append(cachingBooks(), cachingStreams()...)...)
}

// cachingSizes returns bugs of sizes and settings, and of what serves a request.
func cachingSizes() []Bug {
	return []Bug{
		{ID: "caching/ten-mebibytes-shared", Setting: cachingSmall, Breaks: []string{"I61"}, Minimal: "a 10485760",
			Doc: "a request of 10 MiB gets a segment of 20 MiB"},
		{ID: "caching/segment-not-rounded", Setting: cachingSmall, Breaks: []string{"I61"}, Minimal: "a 10485761",
			Doc: "a segment for one request is as large as that"},
		{ID: "caching/mebibyte-is-large", Setting: cachingSmall, Breaks: []string{"I61"}, Minimal: "a 1048576",
			Doc: "a request of 1 MiB is a large one"},
		{ID: "caching/power-goes-on", Setting: cachingSteps, Breaks: []string{"I61"}, Minimal: "a 8192",
			Doc: "a power of two is rounded to the next step"},
		{ID: "caching/half-the-steps", Setting: cachingSteps, Breaks: []string{"I61"}, Minimal: "a 8193",
			Doc: "there are half as many steps between powers of two"},
		{ID: "caching/last-entry-overwritten", Setting: cachingSteps, Breaks: []string{"I61"}, Minimal: "a 4194305",
			Doc: "the entry for all above the last one overwrites that, as in 2.6"},
		{ID: "caching/entry-one-below", Setting: cachingSteps, Breaks: []string{"I61"}, Minimal: "a 4194305",
			Doc: "an entry is for the sizes below its own"},
		{ID: "caching/gaps-have-steps", Setting: cachingSteps, Breaks: []string{"I61"}, Minimal: "a 2097153",
			Doc: "sizes between two entries have the steps of the lower one"},
		{ID: "caching/first-entry-not-below", Setting: cachingBelow, Breaks: []string{"I61"}, Minimal: "a 8193",
			Doc: "sizes below the first entry have no steps"},
		{ID: "caching/rounding-not-by-segment", Setting: cachingSegments, Breaks: []string{"I61"}, Or: []string{"I13"}, Minimal: "a 33554432\nf 0\na 17825792",
			Doc: "how much too large a block may be is not bounded by the size of a segment"},
		{ID: "caching/oversize-for-all", Setting: cachingSplit, Breaks: []string{"I61"}, Minimal: "a 33554432\nf 0\na 1048577",
			Doc: "a block that may not be split serves any request"},
		{ID: "caching/splits-oversize", Setting: cachingSplit, Breaks: []string{"I61", "P12"}, Minimal: "a 58720256\nf 0\na 41943040",
			Doc: "a block that may not be split is"},
		{ID: "caching/rounding-inclusive", Setting: cachingSplit, Breaks: []string{"I61", "I13"}, Minimal: "a 58720256\nf 0\na 33554432",
			Doc: "a block that may not be split may be too large by exactly the bound"},
		{ID: "caching/splits-a-mebibyte", Setting: cachingSmall, Breaks: []string{"I61", "I6"}, Minimal: "a 19922944",
			Doc: "a tail of exactly 1 MiB is split off a large block"},
		{ID: "caching/keeps-a-quantum", Setting: cachingSmall, Breaks: []string{"I61", "I13"}, Minimal: "a 1048576\na 1048064",
			Doc: "a tail of 512 bytes stays with a small block"},
		{ID: "caching/any-stream", Setting: cachingSmall, Breaks: []string{"I15"}, Minimal: "a 1 stream=1",
			Doc: "the shelf that was looked for last serves any stream"},
		{ID: "caching/takes-what-grows", Setting: cachingGrows, Breaks: []string{"I61"}, Minimal: "a 1048576\na 524288\nf 0\na 1",
			Doc: "the smallest block is taken although it could grow"},
		{ID: "caching/starts-at-gap", Setting: cachingGrows, Breaks: []string{"I61"}, Minimal: "a 1048577\na 31457280",
			Doc: "memory is mapped for all of a request although what lies before it is free"},
		{ID: "caching/lost-remainder", Setting: cachingSmall, Breaks: []string{"I9", "I7"}, Minimal: "a 1",
			Doc: "the remainder of a split is put into no index"},
	}
}

// cachingSegmentsBugs returns bugs of what is taken from the device and given back.
func cachingSegmentsBugs() []Bug {
	return []Bug{
		{ID: "caching/collects-without-bound", Setting: cachingIdle, Breaks: []string{"I61"}, Minimal: "a 20971520\nf 0\na 23068672",
			Doc: "old segments go back although the bytes held are not bounded"},
		{ID: "caching/hits-do-not-age", Setting: cachingAges, Breaks: []string{"P13"}, Minimal: "a 1048577\na 1048577",
			Doc: "a lookup that finds a block ages nothing"},
		{ID: "caching/limit-of-request", Setting: cachingLimit, Breaks: []string{"I20"}, Minimal: "a 20971520\na 1048577",
			Doc: "the bound is compared with the request, not with its segment"},
		{ID: "caching/flushes-while-redirected", Setting: cachingSmall, Breaks: []string{"I58"}, Or: []string{"I60"},
			Minimal: "pool begin 1\na 68719476736", Doc: "everything is given back for a request that is redirected"},
		{ID: "caching/searches-after-flush", Setting: cachingSmall, Breaks: []string{"I58"},
			Minimal: "a 9437184\na 9437184\na 46137344\nuse 0 1\nf 0\na 9437184",
			Doc:     "after everything was given back the free blocks are searched again"},
		{ID: "caching/failed-retry-uncounted", Setting: cachingSmall, Breaks: []string{"I58"}, Minimal: "a 68719476736",
			Doc: "a retry counts only if it works"},
		{ID: "caching/small-goes-first", Setting: cachingSmall, Breaks: []string{"I62"}, Minimal: "a 1\na 1048577",
			Doc: "small segments go back before large ones"},
		{ID: "caching/largest-goes-first", Setting: cachingSmall, Breaks: []string{"I62"}, Minimal: "a 10485760\na 12582912",
			Doc: "segments go back largest first"},
		{ID: "caching/first-page-stays", Setting: cachingGrows, Breaks: []string{"I29"}, Or: []string{"I55"}, Minimal: "a 1048577",
			Doc: "the first free page of a block keeps its memory"},
		{ID: "caching/gap-unlisted", Setting: cachingGrows, Breaks: []string{"P5"}, Minimal: "a 1",
			Doc: "what is left of addresses without memory is not listed"},
		{ID: "caching/gaps-apart", Setting: cachingGrows, Breaks: []string{"P2"}, Minimal: "a 1",
			Doc: "addresses whose memory was taken away are not merged with those behind them"},
		{ID: "caching/mapped-uncounted", Setting: cachingGrows, Breaks: []string{"I58", "P7"}, Minimal: "a 1",
			Doc: "mapped memory does not count as reserved"},
		{ID: "caching/page-comes-back", Setting: cachingGrows, Breaks: []string{"P10"}, Or: []string{"I19", "I34", "I47"}, Minimal: "a 1",
			Doc: "pages that went back are mapped again"},
		{ID: "caching/reserved-stays", Setting: cachingSmall, Breaks: []string{"I58"}, Or: []string{"P7"}, Minimal: "a 1",
			Doc: "a segment that goes back goes on to count as reserved"},
		{ID: "caching/segment-still-counted", Setting: cachingSmall, Breaks: []string{"P11"}, Minimal: "a 1",
			Doc: "a pool goes on to count a segment that it gave back"},
		{ID: "caching/pools-stay", Setting: cachingSmall, Breaks: []string{"I55", "I29"}, Minimal: "pool begin 1\na 1",
			Doc: "the memory of private pools never goes back"},
		{ID: "caching/pools-in-use-go", Setting: cachingSmall, Breaks: []string{"I54"}, Minimal: "pool begin 1\na 1\nf 0\ntrim",
			Doc: "the memory of private pools goes back while they have users"},
		{ID: "caching/pool-falls-to-default", Setting: cachingSmall, Breaks: []string{"I53"}, Or: []string{"I52"}, Minimal: "pool begin 1\na 1",
			Doc: "what a private pool without users has falls to the default pool"},
		{ID: "caching/end-flushes", Setting: cachingSmall, Breaks: []string{"I57"}, Judge: ByRelations, Minimal: "a 10485760\nf 0\na 1",
			Doc: "large segments go back when a redirection ends"},
		{ID: "caching/forgets-users", Setting: cachingSmall, Breaks: []string{"I56"}, Minimal: "pool begin 1",
			Doc: "a private pool without memory is forgotten although it has users"},
		{ID: "caching/other-redirection", Setting: cachingOld, Breaks: []string{"I52"}, Minimal: "pool begin 1\npool begin 2\na 1",
			Doc: "of two redirections the other one decides"},
		{ID: "caching/redirection-overlooked", Setting: cachingSmall, Breaks: []string{"I52"}, Or: []string{"I53"}, Minimal: "pool begin 1\na 1",
			Doc: "a redirected request is served from the default pool"},
		{ID: "caching/ends-last", Setting: cachingSmall, Breaks: []string{"I52"},
			Minimal: "pool begin 1 stream=1\npool begin 1\npool end 1\na 1", Doc: "of two redirections into a pool the last one ends"},
		{ID: "caching/default-is-private", Setting: cachingSmall, Breaks: []string{"I56"}, Minimal: "pool begin 0",
			Doc: "the default pool can be begun"},
	}
}

// cachingBooks returns bugs of tables and counters.
func cachingBooks() []Bug {
	return []Bug{
		{ID: "caching/split-loses-bytes", Setting: cachingSmall, Breaks: []string{"I58", "I59"}, Or: []string{"P7"}, Minimal: "a 1",
			Doc: "the remainder of a split is a quantum short"},
		{ID: "caching/link-not-mirrored", Setting: cachingSmall, Breaks: []string{"P1"}, Minimal: "a 1024\na 1\nf 0\na 1",
			Doc: "the block behind a split leads back to the first part"},
		{ID: "caching/row-lost", Setting: cachingSmall, Breaks: []string{"P6"}, Minimal: "a 1",
			Doc: "the row of a block that was merged is put into no list"},
		{ID: "caching/other-shelf", Setting: cachingSmall, Breaks: []string{"P3"}, Or: []string{"I35"}, Minimal: "a 1",
			Doc: "a part of a segment stands in the shelf of the other size kind"},
		{ID: "caching/entry-stays", Setting: cachingSmall, Breaks: []string{"P4"}, Or: []string{"I23"}, Minimal: "a 1",
			Doc: "a freed block stays in the table of addresses"},
		{ID: "caching/misses-next", Setting: cachingSmall, Breaks: []string{"I5", "P2"}, Minimal: "a 1",
			Doc: "a freed block is not merged with the free one behind it"},
		{ID: "caching/misses-previous", Setting: cachingSmall, Breaks: []string{"I5", "P2"}, Minimal: "a 1\na 1",
			Doc: "a freed block is not merged with the free one before it"},
		{ID: "caching/asked-is-rounded", Setting: cachingSmall, Breaks: []string{"P7"}, Or: []string{"I14", "I16", "I58"}, Minimal: "a 1",
			Doc: "a block remembers its request rounded"},
		{ID: "caching/small-in-large", Setting: cachingSmall, Breaks: []string{"P9"}, Minimal: "a 1",
			Doc: "small requests are served from large segments"},
		{ID: "caching/requested-stays", Setting: cachingSmall, Breaks: []string{"I58"}, Or: []string{"I16"}, Minimal: "a 1",
			Doc: "requested bytes do not fall"},
		{ID: "caching/whole-is-split", Setting: cachingSmall, Breaks: []string{"I58", "P7"}, Minimal: "a 1",
			Doc: "a free segment in one piece counts as split"},
	}
}

// cachingStreams returns bugs of streams, of their use of blocks, and of what is told of it.
func cachingStreams() []Bug {
	return []Bug{
		{ID: "caching/use-forgotten", Setting: cachingSmall, Breaks: []string{"I50"}, Minimal: "a 1\nuse 0 1",
			Doc: "a stream that is recorded is forgotten"},
		{ID: "caching/first-use-only", Setting: cachingSmall, Breaks: []string{"I50"}, Or: []string{"I49"},
			Minimal: "a 1\nuse 0 1\nuse 0 2", Doc: "a freed block waits for one of the streams that were recorded"},
		{ID: "caching/done-at-once", Setting: cachingSmall, Breaks: []string{"I50"}, Or: []string{"I49"}, Minimal: "a 1\nuse 0 1\nf 0\npoll",
			Doc: "a mark is taken for done when the device is asked"},
		{ID: "caching/marks-during-capture", Setting: cachingSmall, Breaks: []string{"I60"}, Minimal: "a 1\nuse 0 1\npool begin 1",
			Doc: "events are recorded while requests are redirected"},
		{ID: "caching/allocated-while-pending", Setting: cachingSmall, Breaks: []string{"I16", "I58"}, Minimal: "a 1\nuse 0 1",
			Doc: "allocated bytes do not fall when a block becomes pending"},
		{ID: "caching/waiting-drifts", Setting: cachingSmall, Breaks: []string{"P8"}, Minimal: "a 1\nuse 0 1",
			Doc: "what is pending no more goes on to count"},
		{ID: "caching/parked-drifts", Setting: cachingSmall, Breaks: []string{"I16"}, Minimal: "a 1\nuse 0 1",
			Doc: "the bytes asked for of pending blocks do not fall"},
		{ID: "caching/goes-silent", Setting: cachingSmall, Breaks: []string{"I59"}, Minimal: "a 1\nuse 0 1",
			Doc: "the history ends when a pending block becomes free"},
		{ID: "caching/keeps-events", Setting: cachingSmall, Breaks: []string{"I32"}, Minimal: "a 1\nuse 0 1",
			Doc: "closing keeps the events"},
	}
}
