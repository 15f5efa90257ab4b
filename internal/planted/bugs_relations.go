package planted

// relations returns bugs that one run alone does not show.
func relations() []Bug {
	return []Bug{
		{ID: "bfc/stream-moves", Setting: bfcGrowth, Judge: ByRelations, Breaks: []string{"I39"}, Minimal: "a 1",
			Doc: "a block of a stream other than the first is granted a unit more"},
		{ID: "wrapped/freed-is-pending", Setting: bfcGrowth, Judge: ByRelations, Breaks: []string{"I40"}, Minimal: "a 1",
			Doc: "a freed block stays pending for ever"},
		{ID: "wrapped/look-moves", Setting: buddySmall, Judge: ByRelations, Breaks: []string{"I41"}, Minimal: "a 1",
			Doc: "looking at the search has the next request doubled"},
		{ID: "slab/mistake-passes-turn", Setting: runsTwo, Judge: ByRelations, Breaks: []string{"I42"}, Minimal: "a 1",
			Doc: "a request that is a mistake passes the turn on"},
		{ID: "bfc/split-by-address", Setting: bfcGrowth, Judge: ByRelations, Breaks: []string{"I43"}, Minimal: "a 1",
			Doc: "chunks at high addresses are not split"},
	}
}
