package planted

// runsBugs returns bugs of the slab of mode "xdl".
func runsBugs() []Bug {
	return []Bug{
		{ID: "slab/unit-too-many", Setting: runsOne, Breaks: []string{"I13"}, Minimal: "a 256",
			Doc: "a whole number of units gets one more"},
		{ID: "slab/one-byte-short", Setting: runsOne, Breaks: []string{"I13"}, Minimal: "a 257",
			Doc: "one byte above a whole number of units is rounded down"},
		{ID: "slab/interior-free", Setting: runsOne, Breaks: []string{"I23"}, Minimal: "a 1\nbadfree inside 0",
			Doc: "an address inside the first unit of a block frees it"},
		{ID: "slab/class-too-low", Setting: runsOne, Breaks: []string{"S1"}, Minimal: "a 1",
			Doc: "a chunk with four units in a row is listed among those with three"},
		{ID: "slab/class-not-renewed", Setting: runsTight, Breaks: []string{"S1"}, Minimal: full(15, "a 1024") + "a 1",
			Doc: "a chunk stays in its list when its class falls"},
		{ID: "slab/push-drops-prev", Setting: runsOne, Breaks: []string{"S1"}, Minimal: "a 1",
			Doc: "the chunk that was in front of its list does not name the new one"},
		{ID: "slab/head-left", Setting: runsOne, Breaks: []string{"I14", "S2"}, Minimal: "a 1",
			Doc: "a freed block stays marked as the start of one"},
		{ID: "slab/front-chunk-noted", Setting: runsTight, Breaks: []string{"S4"}, Minimal: full(16, "a 1024") + "a 1",
			Doc: "a live block is noted as one of the first chunk"},
		{ID: "slab/line-uncounted", Setting: runsOne, Breaks: []string{"I7", "S5"}, Minimal: "a 1",
			Doc: "a slice that is attached is not counted"},
		{ID: "slab/region-ahead", Setting: runsOne, Breaks: []string{"S6"}, Minimal: "a 1",
			Doc: "a region is taken before a segment needs it"},
		{ID: "slab/base-one-unit-up", Setting: runsOne, Breaks: []string{"I2", "S7"}, Minimal: "a 1",
			Doc: "a region is noted to begin a unit higher"},
		{ID: "slab/frees-one-unit", Setting: runsOne, Breaks: []string{"I16", "S8"}, Minimal: "a 257",
			Doc: "a free takes one unit from the allocated bytes whatever the block has"},
		{ID: "slab/hole-of-first-chunk", Setting: runsOne, Breaks: []string{"I9", "S9"}, Minimal: "a 1",
			Doc: "the largest hole is looked for in the first chunk only"},
	}
}

// listsBugs returns bugs of the slab of mode "blaze".
func listsBugs() []Bug {
	return []Bug{
		{ID: "blaze/doubles-powers", Setting: listsSmall, Breaks: []string{"I13"}, Minimal: "a 2",
			Doc: "a power of two is rounded up to the next one"},
		{ID: "blaze/one-byte-short", Setting: listsSmall, Breaks: []string{"I13"}, Minimal: "a 3",
			Doc: "one byte above a power of two is rounded down"},
		{ID: "blaze/refuses-zero", Setting: listsSmall, Breaks: []string{"I22"}, Minimal: "a 0",
			Doc: "a request for no bytes is refused"},
		{ID: "blaze/grants-live-again", Setting: listsSmall, Breaks: []string{"I9", "I10", "Z1"}, Minimal: "a 4096\nfault 1\na 1\na 1",
			Doc: "after a region is refused the newest one is cut from its start again"},
		{ID: "blaze/loss-uncounted", Setting: listsSmall, Breaks: []string{"Z1"}, Minimal: "a 1\na 4096",
			Doc: "what is left of the region before is not counted as lost"},
		{ID: "blaze/left-by-request-class", Setting: listsSmall, Breaks: []string{"I7", "I9", "Z1"}, Minimal: "a 1",
			Doc: "more is taken from what is left of a region than was cut"},
		{ID: "blaze/list-cut-off", Setting: listsSmall, Breaks: []string{"I7", "Z2"}, Minimal: "a 1\na 1",
			Doc: "a grant from a list loses the rest of it"},
		{ID: "blaze/listed-below", Setting: listsSmall, Breaks: []string{"I7", "I9", "Z1"}, Minimal: "a 3",
			Doc: "a freed block is taken for one of the class below"},
		{ID: "blaze/bit-left", Setting: listsSmall, Breaks: []string{"Z3"}, Minimal: "a 1",
			Doc: "a list that became empty is still known as one that is not"},
		{ID: "blaze/not-indexed", Setting: listsSmall, Breaks: []string{"I23", "Z4"}, Minimal: "a 1",
			Doc: "a block that is cut is not entered into the index"},
		{ID: "blaze/frees-what-was-asked", Setting: listsSmall, Breaks: []string{"I16", "Z6"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
	}
}

// full returns n times a line.
func full(n int, line string) (text string) {
	for range n {
		text += line + "\n"
	}
	return text
}
