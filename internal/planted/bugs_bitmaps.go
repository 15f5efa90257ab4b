package planted

// The settings. Regions are small, so that there are several and memory runs out.
var (
	bitmapsPlain = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096}`, `{"capacity":65536,"align":256}`}
	bitmapsTrim  = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"trim":"on"}`, `{"capacity":65536,"align":256}`}
	bitmapsOdd   = Setting{"buddy", `{"block_bytes":256,"region_bytes":7168,"growth":"fixed"}`, `{"capacity":65536,"align":256}`}
	bitmapsFib   = Setting{"buddy", `{"block_bytes":256,"region_bytes":8192,"family":"fibonacci","growth":"fixed"}`,
		`{"capacity":65536,"align":256}`}
	bitmapsListed = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"placement":"newest"}`, `{"capacity":65536,"align":256}`}
	bitmapsFull   = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"growth":"fixed","region_choice":"fullest"}`,
		`{"capacity":65536,"align":256}`}
	bitmapsLow = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"growth":"fixed","region_choice":"lowest"}`,
		`{"capacity":65536,"align":256,"policy":"top-down"}`}
	bitmapsLate = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"growth":"fixed","coalescing":"failure"}`,
		`{"capacity":4096,"align":256}`}
	bitmapsHigh = Setting{"buddy", `{"block_bytes":256,"region_bytes":65536,"growth":"fixed","placement":"top-down"}`,
		`{"capacity":1048576,"align":256}`}
	bitmapsLarge = Setting{"buddy", `{"block_bytes":256,"region_bytes":4194304,"growth":"fixed","placement":"top-down"}`,
		`{"capacity":16777216,"align":256}`}
	bitmapsBack   = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"release":true}`, `{"capacity":65536,"align":256}`}
	bitmapsDirect = Setting{"buddy", `{"block_bytes":256,"region_bytes":4096,"direct_bytes":2048}`, `{"capacity":65536,"align":256}`}
)

// bitmapsBugs returns bugs of the modern mode of the buddy.
func bitmapsBugs() []Bug {
	return []Bug{
		{ID: "buddy/class-one-short", Setting: bitmapsPlain, Breaks: []string{"I13"}, Minimal: "a 257",
			Doc: "a request of one unit more than a block gets the block"},
		{ID: "buddy/returns-one-short", Setting: bitmapsPlain, Breaks: []string{"I14", "H1"}, Minimal: "a 512",
			Doc: "one unit of a block that is freed stays granted"},
		{ID: "buddy/parts-swapped", Setting: bitmapsFib, Breaks: []string{"H2"}, Or: []string{"I35"}, Minimal: "a 1",
			Doc: "the smaller part of a block that is split lies left"},
		{ID: "buddy/tail-lost", Setting: bitmapsTrim, Breaks: []string{"I14", "H3"}, Minimal: "a 513",
			Doc: "a tail that is given back is not entered"},
		{ID: "buddy/keeps-buddy", Setting: bitmapsPlain, Breaks: []string{"I5", "H4"}, Minimal: "a 1",
			Doc: "two free buddies of four units are not merged"},
		{ID: "buddy/class-not-noted", Setting: bitmapsPlain, Breaks: []string{"I14", "H5"}, Minimal: "a 1",
			Doc: "that a region has a free block of a class is not noted"},
		{ID: "buddy/summary-not-set", Setting: bitmapsHigh, Breaks: []string{"I35"}, Or: []string{"I14", "H5"}, Minimal: "a 1",
			Doc: "that a word of the free blocks of a class has members is not noted"},
		{ID: "buddy/class-still-noted", Setting: bitmapsPlain, Breaks: []string{"I9", "H5"}, Minimal: "a 1",
			Doc: "a class without a free block is still noted as one that has"},
		{ID: "buddy/level-beside", Setting: bitmapsPlain, Breaks: []string{"I14", "H5"}, Or: []string{"I9"}, Minimal: "a 1\na 1\na 1",
			Doc: "whether a class has a free block left is read from the class below"},
		{ID: "buddy/ranks-unsorted", Setting: bitmapsLow, Breaks: []string{"I8", "H6"}, Minimal: "a 4096\na 4096",
			Doc: "a lower region that comes later is taken last"},
		{ID: "buddy/bucket-stays", Setting: bitmapsFull, Breaks: []string{"H6"}, Minimal: "a 4096",
			Doc: "a region that fills up stays among the empty ones"},
		{ID: "buddy/link-one-way", Setting: bitmapsListed, Breaks: []string{"H7"}, Minimal: "a 1\na 1\na 1",
			Doc: "the list of a class keeps a link to a block that left it"},
		{ID: "buddy/count-drift", Setting: bitmapsPlain, Breaks: []string{"H8"}, Minimal: "a 1",
			Doc: "the count of the free blocks of a class does not fall"},
		{ID: "buddy/modern-frees-what-was-asked", Setting: bitmapsPlain, Breaks: []string{"I16", "H9"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
		{ID: "buddy/kept-unsorted", Setting: bitmapsDirect, Breaks: []string{"H10"}, Minimal: "a 4096\na 8192",
			Doc: "direct regions that are kept are not kept by size"},
		{ID: "buddy/tail-of-region-lost", Setting: bitmapsOdd, Breaks: []string{"H11"}, Minimal: "a 1",
			Doc: "of a region only the largest root is of use"},
		{ID: "buddy/label-stays", Setting: bitmapsBack, Breaks: []string{"H12"}, Minimal: "a 1",
			Doc: "the addresses of a region that went back still lead to its record"},
		{ID: "buddy/aligns-down", Setting: bitmapsFib, Breaks: []string{"I12"}, Minimal: "a 1 align=512",
			Doc: "a block is not moved up to the alignment that was asked for"},
		{ID: "buddy/never-coalesces", Setting: bitmapsLate, Breaks: []string{"H4"}, Minimal: "a 1\nf 0\na 257\na 2049",
			Doc: "blocks that were left unmerged are not merged when a request fails"},
	}
}
