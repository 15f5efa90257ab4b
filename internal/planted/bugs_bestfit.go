package planted

// The settings of strategies over tiles. Memory runs out soon, and regions are small.
var (
	bestfitSmall = Setting{"bestfit", `{"limit":65536}`, `{"capacity":65536,"align":256}`}
	bestfitKept  = Setting{"bestfit", `{"growth":"doubling","region_bytes":4096,"release":true,"keep_bytes":4096}`,
		`{"capacity":65536,"align":256}`}
)

// tilesBugs returns bugs of the table of chunks that tile their regions.
func tilesBugs() []Bug {
	return []Bug{
		{ID: "tiles/split-loses-bytes", Setting: bestfitSmall, Breaks: []string{"K1"}, Minimal: "a 1",
			Doc: "the remainder of a split is a quantum short"},
		{ID: "tiles/split-drops-prev", Setting: bestfitSmall, Breaks: []string{"K1"}, Minimal: "a 512\na 1\nf 0\na 1",
			Doc: "the neighbour behind a split goes on to name the chunk before"},
		{ID: "tiles/requested-forgotten", Setting: bestfitSmall, Breaks: []string{"K3"}, Or: []string{"I14"}, Minimal: "a 1",
			Doc: "a block forgets what was asked for"},
		{ID: "tiles/not-indexed", Setting: bestfitSmall, Breaks: []string{"K4"}, Minimal: "a 1",
			Doc: "a block is not entered into the index of addresses"},
		{ID: "tiles/handle-lost", Setting: bestfitSmall, Breaks: []string{"K5"}, Minimal: "a 1",
			Doc: "a retired handle is put into no list"},
		{ID: "tiles/occupied-unbooked", Setting: bestfitKept, Breaks: []string{"K6"}, Minimal: "a 1",
			Doc: "a region that is occupied goes on to count as empty"},
		{ID: "tiles/frees-what-was-asked", Setting: bestfitSmall, Breaks: []string{"I16", "K7"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
		{ID: "tiles/neighbours-swapped", Setting: bestfitSmall, Breaks: []string{"I64"}, Minimal: "a 1",
			Doc: "what is free below a block is told as what is free above it"},
		{ID: "whatif/merges-nothing", Setting: bestfitSmall, Breaks: []string{"I65"}, Minimal: "a 1\nf 0\na 65536",
			Doc: "chunks that would be free side by side are looked at one by one"},
		{ID: "tiles/moves-unaligned", Setting: bestfitSmall, Breaks: []string{"I66"}, Minimal: "a 1\na 1 align=512",
			Doc: "a block is moved down to where its alignment is lost"},
	}
}

// bestfitBugs returns bugs of the best fit.
func bestfitBugs() []Bug {
	return []Bug{
		{ID: "bestfit/misses-right", Setting: bestfitSmall, Breaks: []string{"I5", "K2"}, Minimal: "a 1",
			Doc: "a freed chunk is not merged with the free one behind it"},
		{ID: "bestfit/misses-left", Setting: bestfitSmall, Breaks: []string{"I5", "K2"}, Minimal: "a 1\na 1",
			Doc: "a freed chunk is not merged with the free one before it"},
		{ID: "bestfit/lost-remainder", Setting: bestfitSmall, Breaks: []string{"I7", "I9", "F1"}, Minimal: "a 1",
			Doc: "a free chunk at the end of its region is put into no map"},
		{ID: "bestfit/tail-among-holes", Setting: bestfitSmall, Breaks: []string{"F2"}, Minimal: "a 1",
			Doc: "the end of a region is put among the holes"},
		{ID: "bestfit/keeps-a-quantum", Setting: bestfitSmall, Breaks: []string{"I13"}, Minimal: "a 257\na 1\nf 0\na 1",
			Doc: "a remainder of one quantum is left with the block"},
		{ID: "bestfit/passes-exact-fit", Setting: bestfitSmall, Breaks: []string{"I26"}, Minimal: "a 65536\nf 0\na 65536",
			Doc: "a hole of exactly the size asked for is passed over"},
		{ID: "bestfit/aligned-by-size", Setting: bestfitSmall, Breaks: []string{"I26"}, Minimal: "a 512\na 65024\nf 0\na 512 align=512",
			Doc: "for an alignment only chunks with room to spare are looked at"},
		{ID: "bestfit/hole-without-tails", Setting: bestfitSmall, Breaks: []string{"I9"}, Minimal: "a 1",
			Doc: "the largest hole leaves out the ends of regions"},
	}
}
