package planted

// The settings. Devices are small, because bugs show when memory runs out, and align
// finely, so that regions may touch.
var (
	bfcGrowth = Setting{"bfc:growth", `{"limit":16777216}`, `{"capacity":12582912,"align":256}`}
	bfcSmall  = Setting{"bfc:growth", `{"limit":16777216}`, `{"capacity":2097152,"align":256}`}
	bfcRoomy  = Setting{"bfc:growth", `{"limit":16777216}`, `{"capacity":25165824,"align":256}`}
	bfcDown   = Setting{"bfc:growth", `{"limit":16777216}`, `{"capacity":12582912,"align":256,"policy":"top-down"}`}
	bfcWide   = Setting{"bfc", `{"limit":1073741824}`, `{"capacity":1073741824,"align":256}`}
	bfcGC     = Setting{"bfc:gc", `{"limit":16777216}`, `{"capacity":12582912,"align":256}`}
	bfcVMM    = Setting{"bfc:vmm", `{"limit":16777216}`, `{"capacity":12582912,"align":256,"gap":4096}`}
	bfcWaste  = Setting{"bfc:growth", `{"limit":16777216,"fragmentation_fraction":0.0009765625}`, `{"capacity":25165824,"align":256}`}
	bfc2026   = Setting{"bfc:2026", `{"limit":16777216}`, `{"capacity":12582912,"align":256}`}
	bfcEnds   = Setting{"bfc:spatial", `{"limit":16777216}`, `{"capacity":12582912,"align":256}`}
	bfcTiming = Setting{"bfc:growth", `{"limit":16777216,"timing":true}`, `{"capacity":25165824,"align":256}`}
	bfcTight  = Setting{"bfc:growth", `{"limit":16777216,"timing":true}`, `{"capacity":2097152,"align":256}`}
	bfcOld    = Setting{"bfc:2016", `{"limit":16777216}`, `{"capacity":25165824,"align":256}`}
	bfcMended = Setting{"bfc:mended", `{"limit":16777216,"timing":true,"allow_growth":true}`, `{"capacity":25165824,"align":256}`}

	buddySmall = Setting{"buddy:xdl", `{"region_bytes":1048576,"block_bytes":4096}`, `{"capacity":8388608,"align":256}`}
	buddyDown  = Setting{"buddy:xdl", `{"region_bytes":1048576,"block_bytes":4096}`, `{"capacity":8388608,"align":256,"policy":"top-down"}`}
	buddyOne   = Setting{"buddy:xdl", `{"region_bytes":4096,"block_bytes":256}`, `{"capacity":4096,"align":256}`}

	runsOne   = Setting{"slab:xdl", `{"segments":1,"unit_bytes":256,"region_bytes":32768}`, `{"capacity":131072,"align":256,"policy":"top-down"}`}
	runsTwo   = Setting{"slab:xdl", `{"segments":2,"unit_bytes":256,"region_bytes":32768}`, `{"capacity":131072,"align":256}`}
	runsTight = Setting{"slab:xdl", `{"segments":1,"unit_bytes":256,"region_bytes":16384}`, `{"capacity":32768,"align":256,"policy":"top-down"}`}

	listsSmall = Setting{"slab:blaze", `{"min_class_bytes":2,"max_class_bytes":4096,"region_bytes":4096}`,
		`{"capacity":16384,"align":256,"policy":"top-down"}`}

	slabbuddySmall = Setting{"slabbuddy:xdl", `{"region_bytes":32768,"block_bytes":1024,"segments":2}`,
		`{"capacity":262144,"align":256,"policy":"top-down"}`}
)
