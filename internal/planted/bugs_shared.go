package planted

// shared returns bugs of the tables that several strategies keep.
func shared() []Bug {
	return []Bug{
		{ID: "freetree/stale-entry", Setting: bfcGrowth, Breaks: []string{"I7", "B3"}, Minimal: "a 1",
			Doc: "a free chunk that is taken out of its bin stays in it"},
		{ID: "freetree/length-drift", Setting: bfcGrowth, Breaks: []string{"B3"}, Minimal: "a 1",
			Doc: "the length of a bin does not fall"},
		{ID: "freetree/ties-unordered", Setting: bfcGrowth, Breaks: []string{"I8", "B3"}, Minimal: "a 1\na 1\na 1\na 1\nf 0\nf 1",
			Doc: "chunks of one size are not kept by address"},
		{ID: "addrmap/stale-entry", Setting: bfcGrowth, Breaks: []string{"I23"}, Or: []string{"B8"}, Minimal: "a 1\na 1\nf 0\nbadfree freed 0",
			Doc: "the index keeps the start of a freed block"},
		{ID: "addrmap/chain-cut", Setting: bfcGrowth, Breaks: []string{"B8"}, Or: []string{"I23"}, Minimal: "a 21248\na 1\nf 1",
			Doc: "a deletion cuts later entries of its bucket off"},
		{ID: "ledger/stale-entry", Setting: buddySmall, Breaks: []string{"I23"}, Or: []string{"I14"}, Minimal: "a 1\na 1\nf 0\nbadfree freed 0",
			Doc: "the table keeps a freed block, which can be freed twice"},
		{ID: "ledger/stale-entry", Setting: runsOne, Breaks: []string{"I23"}, Or: []string{"I15"}, Minimal: "a 1\na 1\nf 0\nbadfree freed 0",
			Doc: "the table keeps a freed block, which can be freed twice"},
		{ID: "ledger/count-drift", Setting: buddySmall, Breaks: []string{"U1"}, Minimal: "a 1",
			Doc: "the count of live blocks does not fall"},
		{ID: "ledger/count-drift", Setting: runsOne, Breaks: []string{"S3"}, Minimal: "a 1",
			Doc: "the count of live blocks does not fall"},
		{ID: "ledger/passed-unseen", Setting: slabbuddySmall, Breaks: []string{"I14"}, Minimal: "a 1\na 1\na 1\na 1\na 1",
			Doc: "a block whose bucket is full is not looked for in the next one"},
		{ID: "bitset/summary-not-set", Setting: bitmapsLarge, Breaks: []string{"I14"}, Minimal: "a 1",
			Doc: "a member that is the first of its word is not noted above"},
		{ID: "regions/insert-unsorted", Setting: buddyDown, Breaks: []string{"U7"}, Minimal: "a 1048576\na 1",
			Doc: "a new region is listed last whatever its address"},
		{ID: "regions/insert-unsorted", Setting: listsSmall, Breaks: []string{"Z5"}, Minimal: "a 4096\na 1",
			Doc: "a new region is listed last whatever its address"},
		{ID: "regions/refusal-uncounted", Setting: buddySmall, Breaks: []string{"I19"}, Minimal: "fault 1\na 1",
			Doc: "a reservation that the device refuses is not counted"},
		{ID: "regions/forgotten-on-fault", Setting: runsOne, Breaks: []string{"I32"}, Minimal: "a 1", Judge: ByFaults, Nth: 2,
			Doc: "a region that the device does not take back is forgotten"},
		{ID: "regions/close-keeps-newest", Setting: slabbuddySmall, Breaks: []string{"I32"}, Minimal: "a 1",
			Doc: "closing forgets the newest region"},
	}
}
