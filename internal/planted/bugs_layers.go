package planted

// The settings of the slab-buddy of the modern mode.
var (
	layersSmall = Setting{"slabbuddy", `{"block_bytes":256,"region_bytes":4096,"slab_max_bytes":1024,"slab_slots":4,"direct_bytes":16384}`,
		`{"capacity":65536,"align":256,"policy":"top-down"}`}
	layersTight = Setting{"slabbuddy", `{"block_bytes":256,"region_bytes":4096,"slab_max_bytes":1024,"slab_slots":4,"empty_slabs":1}`,
		`{"capacity":4096,"align":256}`}
)

// layersBugs returns bugs of the slab-buddy of the modern mode, and of its parts seen from
// the whole.
func layersBugs() []Bug {
	return []Bug{
		{ID: "layers/slab-too-large", Setting: layersSmall, Breaks: []string{"I14", "W2"}, Or: []string{"W1"}, Minimal: "a 1",
			Doc: "a slab is cut from a block with room for one byte more"},
		{ID: "layers/place-kept", Setting: layersSmall, Breaks: []string{"W1"}, Minimal: "a 1",
			Doc: "a slab that went back to the buddy is still noted as one"},
		{ID: "layers/slab-kept", Setting: layersSmall, Breaks: []string{"I14", "W2"}, Minimal: "a 1",
			Doc: "the block of a slab that was given up does not go back to the buddy"},
		{ID: "layers/slot-for-one-more", Setting: layersSmall, Breaks: []string{"I13", "W3"}, Minimal: "a 1025",
			Doc: "one byte above the largest class gets a slot of it"},
		{ID: "cells/level-left", Setting: layersSmall, Breaks: []string{"W4"}, Minimal: "a 1",
			Doc: "a list of slabs that became empty is still known as one that is not"},
		{ID: "layers/empty-slabs-kept", Setting: layersTight, Breaks: []string{"I26"}, Minimal: "a 1024\nf 0\na 4096",
			Doc: "empty slabs are not given up before a request is refused"},
		{ID: "layers/refusal-uncounted", Setting: layersSmall, Breaks: []string{"I18"}, Minimal: "a 100000",
			Doc: "a request that is refused is not counted"},
		{ID: "layers/frees-what-was-asked", Setting: layersSmall, Breaks: []string{"I16", "W6"}, Minimal: "a 1",
			Doc: "a free takes the bytes asked for, not those granted, from the allocated ones"},
	}
}
