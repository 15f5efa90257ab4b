package planted

var directSmall = Setting{"direct", `{}`, `{"capacity":65536,"align":256}`}

// directBugs returns bugs of direct allocation.
func directBugs() []Bug {
	return []Bug{
		{ID: "direct/region-kept", Setting: directSmall, Breaks: []string{"D1"}, Minimal: "a 1",
			Doc: "the region of a freed block does not go back"},
		{ID: "direct/frees-what-was-asked", Setting: directSmall, Breaks: []string{"I16", "D2"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
		{ID: "regions/stale-forgotten", Setting: directSmall, Breaks: []string{"D1"}, Minimal: "a 1", Judge: ByFaults, Nth: 2,
			Doc: "a region that the device does not take back is not released later"},
	}
}
