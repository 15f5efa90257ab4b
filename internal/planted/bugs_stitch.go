package planted

// The settings of the stitching allocator: pages of 4 KiB on a device that has twelve.
var (
	stitchSmall = Setting{"stitch", `{"chunk_bytes":4096,"small_bytes":8192,"frag_limit":4096}`, stitchDevice}
	stitchOne   = Setting{"stitch", `{"chunk_bytes":4096,"small_bytes":8192,"frag_limit":4096,"most_sblocks":1}`, stitchDevice}
	stitchLimit = Setting{"stitch", `{"chunk_bytes":4096,"small_bytes":8192,"frag_limit":4096,"limit":32768}`, stitchDevice}
)

const stitchDevice = `{"capacity":49152,"align":4096,"granularity":4096,"charge":4096}`

// stitchBugs returns bugs of the stitching allocator.
func stitchBugs() []Bug {
	return []Bug{
		{ID: "stitch/misses-right", Setting: stitchSmall, Breaks: []string{"I5", "G3"}, Minimal: "a 1",
			Doc: "a freed chunk is not merged with the free one behind it"},
		{ID: "stitch/misses-left", Setting: stitchSmall, Breaks: []string{"I5", "G3"}, Minimal: "a 1\na 1",
			Doc: "a freed chunk is not merged with the free one before it"},
		{ID: "stitch/row-lost", Setting: stitchSmall, Breaks: []string{"G7"}, Minimal: "a 1",
			Doc: "the row of a chunk that was merged is not used again"},
		{ID: "stitch/split-unpainted", Setting: stitchSmall, Breaks: []string{"G1"}, Minimal: "a 8192\nf 0\na 4096",
			Doc: "the pages behind a cut go on to name the pBlock before it"},
		{ID: "stitch/lost-remainder", Setting: stitchSmall, Breaks: []string{"I9", "I7", "G2"}, Minimal: "a 1",
			Doc: "what a block leaves of a free chunk is put into no map"},
		{ID: "stitch/free-uncounted", Setting: stitchSmall, Breaks: []string{"G2"}, Or: []string{"I27"}, Minimal: "a 1",
			Doc: "the bytes of chunks that become free are not counted"},
		{ID: "stitch/grant-unlisted", Setting: stitchSmall, Breaks: []string{"I14", "G8"}, Minimal: "a 1",
			Doc: "a block is not entered into the table of live ones"},
		{ID: "stitch/lifts-nothing", Setting: stitchSmall, Breaks: []string{"I19", "G9"}, Or: []string{"I16", "I29"}, Minimal: "a 4096",
			Doc: "pages whose memory went back are counted as reserved"},
		{ID: "stitch/limit-per-request", Setting: stitchLimit, Breaks: []string{"I20"}, Minimal: "a 4096\na 32768",
			Doc: "the limit bounds each reservation, not their sum"},
		{ID: "stitch/unmaps-too-little", Setting: stitchSmall, Breaks: []string{"I19", "I47"}, Minimal: "a 4096\na 8192\nf 1\na 53248",
			Doc: "when a pBlock goes back while blocks live its last page stays mapped"},
		{ID: "stitch/half-made-forgotten", Setting: stitchSmall, Breaks: []string{"I2"}, Minimal: "a 4096\nf 0\na 8192",
			Judge: ByFaults, Nth: 10, Doc: "the range of an sBlock that could not be made is forgotten"},
		{ID: "stitch/stale-sblock", Setting: stitchSmall, Breaks: []string{"I19", "I48", "G4"}, Minimal: "a 4096\nf 0\na 8192\nf 0\na 53248",
			Doc: "an sBlock stays when pages under it go back"},
		{ID: "stitch/wrong-page", Setting: stitchSmall, Breaks: []string{"I48"}, Minimal: "a 8192\nf 0\na 12288",
			Doc: "the first page of a piece is mapped in place of all"},
		{ID: "stitch/piece-from-start", Setting: stitchSmall, Breaks: []string{"I48"},
			Minimal: "a 12288\nf 0\na 4096\na 12288",
			Doc:     "a piece is mapped from the first pages of its segment on, not from its own"},
		{ID: "stitch/no-access", Setting: stitchSmall, Breaks: []string{"I47"}, Minimal: "a 4096\nf 0\na 8192",
			Doc: "nobody may use the memory of an sBlock"},
		{ID: "stitch/match-takes-nothing", Setting: stitchSmall, Breaks: []string{"I48", "G5"}, Or: []string{"I16"},
			Minimal: "a 4096\nf 0\na 8192\nf 0\na 8192",
			Doc:     "the memory of an sBlock that is granted again can be granted once more"},
		{ID: "stitch/last-piece-held", Setting: stitchSmall, Breaks: []string{"I48", "G5"}, Or: []string{"I16"}, Minimal: "a 4096\nf 0\na 8192",
			Doc: "the last pBlock of an sBlock that is freed is never free again"},
		{ID: "stitch/waits-for-ever", Setting: stitchSmall, Breaks: []string{"G6"},
			Minimal: "a 4096\nf 0\na 8192\nf 0\na 4096\na 8192",
			Doc:     "an sBlock goes on waiting for a pBlock that is free"},
		{ID: "stitch/one-sblock-more", Setting: stitchOne, Breaks: []string{"G6"}, Minimal: "a 4096\nf 0\na 8192\nf 0\na 12288",
			Doc: "there may be one sBlock more than the configuration says"},
	}
}
