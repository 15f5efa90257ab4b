package planted

// The settings of ranges that grow by mapping. Pages are small, and memory runs out soon.
var (
	vmmSmall = Setting{"vmm", `{}`, `{"capacity":65536,"align":4096,"granularity":4096}`}
	vmmFirst = Setting{"vmm", `{"fit":"first"}`, `{"capacity":65536,"align":4096,"granularity":4096}`}
	vmmLimit = Setting{"vmm", `{"limit":16384}`, `{"capacity":65536,"align":4096,"granularity":4096}`}
)

// vmmBugs returns bugs of ranges that grow by mapping.
func vmmBugs() []Bug {
	return []Bug{
		{ID: "vmm/split-loses-bytes", Setting: vmmSmall, Breaks: []string{"I1", "V1"}, Minimal: "a 1",
			Doc: "the remainder of a split is a quantum short"},
		{ID: "vmm/misses-right", Setting: vmmSmall, Breaks: []string{"I5", "V2"}, Minimal: "a 1",
			Doc: "a freed chunk is not merged with the free one behind it"},
		{ID: "vmm/misses-left", Setting: vmmSmall, Breaks: []string{"I5", "V2"}, Minimal: "a 1\na 1",
			Doc: "a freed chunk is not merged with the free one before it"},
		{ID: "vmm/unmapped-apart", Setting: vmmSmall, Breaks: []string{"V2"}, Minimal: "a 1",
			Doc: "addresses whose memory was taken away are not merged with those behind them"},
		{ID: "vmm/page-noted-on", Setting: vmmSmall, Breaks: []string{"V3"}, Minimal: "a 1",
			Doc: "a page whose memory was taken away is still noted"},
		{ID: "vmm/page-mapped-twice", Setting: vmmSmall, Breaks: []string{"I48"}, Minimal: "a 8192",
			Doc: "the first page is mapped in the place of all others"},
		{ID: "vmm/opens-first-page", Setting: vmmSmall, Breaks: []string{"I47"}, Minimal: "a 8192",
			Doc: "of the pages mapped at once only the first may be used"},
		{ID: "vmm/page-lost-on-fault", Setting: vmmSmall, Breaks: []string{"I32", "V8"}, Or: []string{"I19"}, Minimal: "a 1", Judge: ByFaults, Nth: 7,
			Doc: "a page that the device does not take back is forgotten"},
		{ID: "vmm/not-indexed", Setting: vmmSmall, Breaks: []string{"V4"}, Minimal: "a 1",
			Doc: "a block is not entered into the index of addresses"},
		{ID: "vmm/lost-remainder", Setting: vmmSmall, Breaks: []string{"I7", "I9", "V5"}, Minimal: "a 1",
			Doc: "a free chunk before addresses without memory is put into no index"},
		{ID: "vmm/gap-unlisted", Setting: vmmSmall, Breaks: []string{"V6"}, Minimal: "a 1",
			Doc: "what is left of addresses without memory is not listed"},
		{ID: "vmm/row-lost", Setting: vmmSmall, Breaks: []string{"V7"}, Minimal: "a 1",
			Doc: "the row of a chunk that was merged is put into no list"},
		{ID: "vmm/frees-what-was-asked", Setting: vmmSmall, Breaks: []string{"I16", "V8"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
		{ID: "vmm/limit-of-live", Setting: vmmLimit, Breaks: []string{"I20"}, Minimal: "a 8193\na 1\nf 0\na 12288",
			Doc: "the limit is on live bytes, not on what is mapped"},
		{ID: "vmm/keeps-last-page", Setting: vmmSmall, Breaks: []string{"I29"}, Minimal: "a 1",
			Doc: "the last free page of a chunk keeps its memory"},
		{ID: "vmm/requested-forgotten", Setting: vmmSmall, Breaks: []string{"V9"}, Or: []string{"I14"}, Minimal: "a 1",
			Doc: "a block forgets what was asked for"},
		{ID: "vmm/unsorted", Setting: vmmFirst, Breaks: []string{"I8"}, Minimal: "a 1\na 1",
			Doc: "a free chunk is entered at the end of the index by address"},
	}
}
