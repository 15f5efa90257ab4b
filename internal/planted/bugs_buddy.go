package planted

// buddyBugs returns bugs of the buddy system.
func buddyBugs() []Bug {
	return []Bug{
		{ID: "buddy/doubles-powers", Setting: buddySmall, Breaks: []string{"I13"}, Minimal: "a 4096",
			Doc: "a power of two is rounded up to the next one"},
		{ID: "buddy/one-byte-short", Setting: buddySmall, Breaks: []string{"I13"}, Minimal: "a 4097",
			Doc: "one byte above a power of two is rounded down"},
		{ID: "buddy/refuses-whole-region", Setting: buddySmall, Breaks: []string{"I22"}, Minimal: "a 1048576",
			Doc: "a request for a whole region is taken for one that is too large"},
		{ID: "buddy/honours-twice-the-block", Setting: buddySmall, Breaks: []string{"I22"}, Minimal: "a 1 align=8192",
			Doc: "an alignment of twice the block is accepted"},
		{ID: "buddy/passes-exact-fit", Setting: buddyOne, Breaks: []string{"I26"}, Minimal: "a 4096\nf 0\na 4096",
			Doc: "a region whose longest run just serves is passed over"},
		{ID: "buddy/unaligned-pair", Setting: buddySmall, Breaks: []string{"U2"}, Minimal: "a 1\na 8192",
			Doc: "two free blocks are granted although they are no buddies"},
		{ID: "buddy/oldest-region-noted", Setting: buddySmall, Breaks: []string{"U1"}, Minimal: "a 1048576\na 1",
			Doc: "a live block is noted as one of the oldest region"},
		{ID: "buddy/misses-lower-buddy", Setting: buddySmall, Breaks: []string{"I5", "U4"}, Minimal: "a 524288\na 524288",
			Doc: "a freed run is not merged with the buddy below it"},
		{ID: "buddy/misses-upper-buddy", Setting: buddySmall, Breaks: []string{"I5", "U4"}, Minimal: "a 1",
			Doc: "a freed run is not merged with the buddy above it"},
		{ID: "buddy/word-never-whole", Setting: buddySmall, Breaks: []string{"I5", "U5"}, Minimal: "a 1",
			Doc: "a word of 64 free blocks is summed up as half of them"},
		{ID: "buddy/grant-clears-below", Setting: buddySmall, Breaks: []string{"U3"}, Minimal: "a 1048576",
			Doc: "a long run that is granted clears a word below its node"},
		{ID: "buddy/head-left", Setting: buddySmall, Breaks: []string{"U9"}, Or: []string{"U3"}, Minimal: "a 1\na 1",
			Doc: "a freed run stays marked as the start of a block"},
		{ID: "buddy/stale-root", Setting: buddySmall, Breaks: []string{"I9", "U6"}, Minimal: "a 1",
			Doc: "a free does not renew the copy of the root"},
		{ID: "buddy/hole-of-newest", Setting: buddySmall, Breaks: []string{"I9"}, Minimal: "a 1\na 1048576",
			Doc: "the largest hole is that of the newest region"},
		{ID: "buddy/frees-what-was-asked", Setting: buddySmall, Breaks: []string{"I16", "U8"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
		{ID: "buddy/fault-leaves-base", Setting: buddySmall, Breaks: []string{"U7"}, Minimal: "a 1", Judge: ByFaults, Nth: 1,
			Doc: "a region that the device refuses is listed all the same"},
	}
}
