package planted

// The settings of the modern slab: slabs of 1 KiB, with four slots of 256, two of 512 or one
// of 1024 bytes.
var (
	cellsSmall = Setting{"slab", `{"slab_bytes":1024,"slab_slots":1,"max_class_bytes":1024,"classes":"pow2","region_bytes":2048,"growth":"fixed"}`,
		`{"capacity":16384,"align":256,"policy":"top-down"}`}
	cellsLowest = Setting{"slab",
		`{"slab_bytes":1024,"slab_slots":1,"max_class_bytes":1024,"classes":"pow2","region_bytes":2048,"growth":"fixed","selection":"lowest"}`,
		`{"capacity":16384,"align":256}`}
	cellsMagazines = Setting{"slab",
		`{"slab_bytes":1024,"slab_slots":1,"max_class_bytes":1024,"classes":"pow2","region_bytes":2048,"growth":"fixed","magazine_rounds":1}`,
		`{"capacity":2048,"align":256}`}
	cellsStreams = Setting{"slab",
		`{"slab_bytes":1024,"slab_slots":1,"max_class_bytes":1024,"classes":"pow2","region_bytes":1024,"growth":"fixed","segments":2,"empty_slabs":1}`,
		`{"capacity":1024,"align":256}`}
	cellsLimit = Setting{"slab",
		`{"slab_bytes":1024,"slab_slots":1,"max_class_bytes":1024,"classes":"pow2","region_bytes":2048,"growth":"fixed","limit":4096}`,
		`{"capacity":16384,"align":256}`}
)

// cellsBugs returns bugs of the slab of the modern mode.
func cellsBugs() []Bug {
	return []Bug{
		{ID: "cells/next-class-too-late", Setting: cellsSmall, Breaks: []string{"I13"}, Minimal: "a 257",
			Doc: "one byte above a class goes to it"},
		{ID: "cells/bit-not-set", Setting: cellsSmall, Breaks: []string{"I14", "C1"}, Or: []string{"I40"}, Minimal: "a 1\na 1",
			Doc: "a slot that comes back is counted and not marked as free"},
		{ID: "cells/not-moved", Setting: cellsSmall, Breaks: []string{"C2"}, Minimal: "a 1\na 1",
			Doc: "a slab stays in its list when its level changes"},
		{ID: "cells/heap-unordered", Setting: cellsLowest, Breaks: []string{"C2"}, Or: []string{"I8"}, Minimal: "a 512\na 512\na 512",
			Doc: "a slab enters the heap at its end, however low it lies"},
		{ID: "cells/segment-kept", Setting: cellsStreams, Breaks: []string{"C2"}, Or: []string{"I7"}, Minimal: "a 1 stream=1\nf 0\na 1",
			Doc: "an empty slab that changes over still belongs to its old segment"},
		{ID: "cells/level-left", Setting: cellsSmall, Breaks: []string{"C3"}, Minimal: "a 512",
			Doc: "a list that became empty is still known as one that is not"},
		{ID: "cells/used-not-lowered", Setting: cellsSmall, Breaks: []string{"C4"}, Or: []string{"I27"}, Minimal: "a 1",
			Doc: "a slot that comes back is still counted as in use"},
		{ID: "cells/empty-kept", Setting: cellsSmall, Breaks: []string{"C5"}, Minimal: "a 1",
			Doc: "more empty slabs are kept than should be"},
		{ID: "cells/depot-without-limit", Setting: cellsMagazines, Breaks: []string{"C6"}, Minimal: "a 1\na 1\na 1",
			Doc: "a depot takes any number of full magazines"},
		{ID: "cells/before-stays-full", Setting: cellsMagazines, Breaks: []string{"C7"}, Or: []string{"I10", "I35"},
			Minimal: "a 1\na 1\nf 0\nf 0\na 1\na 1",
			Doc:     "a magazine that was emptied is taken for full when it becomes the one before"},
		{ID: "cells/before-not-drained", Setting: cellsMagazines, Breaks: []string{"I29"}, Minimal: "a 1\na 1",
			Doc: "draining leaves out the magazine before the loaded one"},
		{ID: "cells/slack-of-the-first", Setting: cellsSmall, Breaks: []string{"I14", "C7"}, Or: []string{"I16"}, Minimal: "a 1\na 2",
			Doc: "what a slot has beyond the request is noted for the first of its slab"},
		{ID: "cells/inner-address", Setting: cellsSmall, Breaks: []string{"I23"}, Minimal: "a 1\nbadfree inside 0",
			Doc: "an address inside a slot is taken for its start"},
		{ID: "cells/freed-twice", Setting: cellsSmall, Breaks: []string{"I23"}, Minimal: "a 1\na 1\nf 0\nbadfree freed 0",
			Doc: "a slot that is free can be freed"},
		{ID: "cells/cached-twice", Setting: cellsMagazines, Breaks: []string{"I23"}, Minimal: "a 1\nf 0\nbadfree freed 0",
			Doc: "a slot in a magazine can be freed"},
		{ID: "cells/note-left", Setting: cellsSmall, Breaks: []string{"C7"}, Minimal: "a 1 stream=1",
			Doc: "the stream of a block is kept when it is freed"},
		{ID: "cells/label-left", Setting: cellsSmall, Breaks: []string{"C11"}, Minimal: "a 1",
			Doc: "addresses still lead to a slab that went back"},
		{ID: "atlas/split-forgets", Setting: cellsSmall, Breaks: []string{"C11"}, Or: []string{"I14"}, Minimal: "a 1\na 1024",
			Doc: "of two ranges in one area only the second is found"},
		{ID: "atlas/node-left", Setting: cellsSmall, Breaks: []string{"C11"}, Minimal: "a 1\na 1024",
			Doc: "a node without a label stays"},
		{ID: "caches/drained-in-vain", Setting: cellsMagazines, Breaks: []string{"I26"}, Minimal: "a 1\na 1024\nf 0\na 512",
			Doc: "what came out of magazines is not looked at again"},
		{ID: "caches/row-left-open", Setting: cellsStreams, Breaks: []string{"C8"}, Minimal: "a 1",
			Doc: "a region without an unattached slice is known as one that has some"},
		{ID: "caches/fresh-for-ever", Setting: cellsSmall, Breaks: []string{"I9", "C8"}, Minimal: "a 1",
			Doc: "slices that become slabs are still counted among those that no slab ever had"},
		{ID: "caches/free-passes-refusal-on", Setting: cellsSmall, Breaks: []string{"I34"}, Minimal: "a 2048", Judge: ByFaults, Nth: 2,
			Doc: "a free answers with the device's error when the device does not take the region back"},
		{ID: "caches/limit-of-slices-only", Setting: cellsLimit, Breaks: []string{"I20"}, Minimal: "a 4097",
			Doc: "blocks with a region of their own are taken beyond the limit"},
		{ID: "caches/frees-what-was-asked", Setting: cellsSmall, Breaks: []string{"I16", "C10"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
	}
}
