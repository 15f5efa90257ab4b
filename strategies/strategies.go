package strategies

import (
	"slices"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/strategies/async"
	"github.com/vramyard/vramyard/strategies/bestfit"
	"github.com/vramyard/vramyard/strategies/bfc"
	"github.com/vramyard/vramyard/strategies/bfc/textbook"
	"github.com/vramyard/vramyard/strategies/buddy"
	buddyxdl "github.com/vramyard/vramyard/strategies/buddy/xdl"
	"github.com/vramyard/vramyard/strategies/caching"
	"github.com/vramyard/vramyard/strategies/compiler"
	"github.com/vramyard/vramyard/strategies/direct"
	"github.com/vramyard/vramyard/strategies/dlmalloc"
	"github.com/vramyard/vramyard/strategies/pgmo"
	"github.com/vramyard/vramyard/strategies/recall"
	"github.com/vramyard/vramyard/strategies/rmm"
	"github.com/vramyard/vramyard/strategies/slab"
	"github.com/vramyard/vramyard/strategies/slab/blaze"
	slabxdl "github.com/vramyard/vramyard/strategies/slab/xdl"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
	slabbuddyxdl "github.com/vramyard/vramyard/strategies/slabbuddy/xdl"
	"github.com/vramyard/vramyard/strategies/stalloc"
	"github.com/vramyard/vramyard/strategies/stitch"
	"github.com/vramyard/vramyard/strategies/tlsf"
	"github.com/vramyard/vramyard/strategies/vmm"
)

// untimed are the default lists of strategies that do not serve every yardstick workload.
const untimed = setting.Compared | setting.Remat

// All returns the catalogue. The slice is the caller's own.
func All() setting.Catalogue {
	return slices.Concat(fitAllocators(), classAllocators(), deviceAllocators(), plannedAllocators())
}

// plannedAllocators place blocks as an earlier run or an earlier part of the run lets expect. They
// are in no default list: without --learn most of them are their fallback.
func plannedAllocators() setting.Catalogue {
	return setting.Catalogue{
		setting.SpecOf("recall", "best fit that recognizes a period of the run and places the next one by a plan", recall.New,
			setting.Preset{In: setting.Unlisted, Doc: "one region of the whole device; no virtual memory"},
			setting.Preset{Name: "pages", JSON: `{"map":"pages"}`,
				Doc: "no plan: idle pages are mapped at more addresses instead of more memory"},
			setting.Preset{Name: "graph", JSON: `{"map":"graph"}`,
				Doc: "as pages, with private pools for captured graphs, whose mappings stay"}),
		setting.SpecOf("stalloc", "places planned from an earlier run, in the manner of STAlloc", stalloc.New,
			setting.Preset{In: setting.Unlisted, Doc: "a planned place that is not free is not used"},
			setting.Preset{Name: "unchecked", JSON: `{"check":"off"}`,
				Doc: "as the original by default: a planned place is not checked, so blocks may overlap after a deviation"}),
		setting.SpecOf("pgmo", "an iteration's places planned from a sample run, in the manner of PGMO", pgmo.New,
			setting.Preset{In: setting.Unlisted, Doc: "planned again with the larger sizes when a request exceeds the sample"}),
		setting.SpecOf("compiler", "addresses recorded in one iteration and replayed, in the manner of ComfyUI", compiler.New,
			setting.Preset{In: setting.Unlisted, Doc: "pages of 8 MiB; smaller requests are not recorded"},
			setting.Preset{Name: "fine", JSON: `{"page_bytes":"2MiB"}`, Doc: "pages of 2 MiB, so fewer requests go to the fallback"}),
	}
}

// fitAllocators cut a region into blocks of any size and search its free chunks.
func fitAllocators() setting.Catalogue {
	return setting.Catalogue{
		setting.SpecOf("bfc", "TensorFlow's best-fit with coalescing", bfc.New,
			setting.Preset{Doc: "as TensorFlow 2.17 and XLA of 2024 place blocks; the whole limit in one region"},
			setting.Preset{Name: "growth", In: setting.Compared, JSON: `{"allow_growth":true}`,
				Doc: "regions are added on demand"},
			setting.Preset{Name: "tensorflow", JSON: `{"garbage_collection":true}`,
				Doc: "TensorFlow's default on GPUs: the whole limit in one region, and garbage collection"},
			setting.Preset{Name: "gc", JSON: `{"allow_growth":true,"garbage_collection":true}`,
				Doc: "growth and garbage collection, as TensorFlow on GPUs with allow_growth"},
			setting.Preset{Name: "jax", JSON: `{"memory_fraction":0.75}`,
				Doc: "JAX's default: three quarters of the card in one region"},
			setting.Preset{Name: "jax-growth", JSON: `{"memory_fraction":0.75,"allow_growth":true}`,
				Doc: "JAX with XLA_PYTHON_CLIENT_PREALLOCATE=false: growth up to three quarters of the card"},
			setting.Preset{Name: "vmm", JSON: `{"allow_growth":true,"coalesce_regions":true}`,
				Doc: "growth in one address range whose regions join, as over virtual memory"},
			setting.Preset{Name: "2026", Doc: "as XLA of August 2026: alignment is honoured", JSON: `{"variant":"2026"}`},
			setting.Preset{Name: "spatial", JSON: `{"variant":"2026","spatial":true}`,
				Doc: "XLA of August 2026 with the two-ended arena"},
			setting.Preset{Name: "2016", Doc: "as TensorFlow 0.10", JSON: `{"variant":"2016"}`},
			setting.Preset{Name: "mended", Doc: "the original's quirks mended", JSON: `{"mended":true}`},
			setting.Preset{Name: "textbook", JSON: `{"compat":"textbook"}`,
				Doc: "the original's data structures, to be read: places blocks as bfc does, more slowly"},
		).WithOriginals(setting.SpecOf("bfc:textbook", "", textbook.New)).KnownAs("tensorflow", "tf", "xla", "jax"),
		setting.SpecOf("bestfit", "the lower of the two smallest chunks that fit", bestfit.New,
			setting.Preset{
				Doc: "the lower of the two smallest chunks, small remainders stay in the block; the whole device in one region"},
			setting.Preset{Name: "strict", JSON: `{"looks":1,"slack":1048576}`,
				Doc: "the smallest chunk that fits, the lowest among equals; every remainder is split off"},
			setting.Preset{Name: "tight", JSON: `{"looks":8,"slack":1048576}`,
				Doc: "the lowest of the eight smallest chunks; every remainder is split off"},
			setting.Preset{Name: "growth", JSON: `{"growth":"proportional"}`,
				Doc: "regions are added on demand, a sixteenth of the bytes held"}),
		setting.SpecOf("tlsf", "two-level segregated fit: lists by size, constant time", tlsf.New,
			setting.Preset{In: untimed | setting.Timed | setting.Yardstick,
				Doc: "as in the paper, but the end of the memory is used last; the whole device in one region"},
			setting.Preset{Name: "growth", JSON: `{"growth":"proportional"}`,
				Doc: "regions are added on demand, a sixteenth of the bytes held"},
			setting.Preset{Name: "scan", JSON: `{"scan":4}`,
				Doc: "of four chunks of the request's own class the lowest that fits, if any does"},
			setting.Preset{Name: "exhaustive", JSON: `{"exhaustive":true}`,
				Doc: "every chunk that may fit is tried before the end of the memory is used"}),
		setting.SpecOf("dlmalloc", "Doug Lea's malloc: small bins, tries, a designated victim, and top", dlmalloc.New,
			setting.Preset{In: setting.Unlisted, Doc: "as dlmalloc 2.8.6 places blocks; the whole device in one region"},
			setting.Preset{Name: "growth", JSON: `{"growth":"proportional"}`,
				Doc: "regions are added on demand, a sixteenth of the bytes held"},
			setting.Preset{Name: "mmap",
				JSON: `{"growth":"fixed","region_bytes":"32MiB","direct_bytes":"128MiB","release":true,"keep_bytes":"1GiB"}`,
				Doc:  "segments and large blocks from the device, by dlmalloc's thresholds in pages of 2 MiB"}),
	}
}

// classAllocators cut regions into blocks of a few sizes: buddies and slabs.
func classAllocators() setting.Catalogue {
	return setting.Catalogue{
		setting.SpecOf("buddy", "blocks that halve, or split like Fibonacci numbers and others", buddy.New,
			setting.Preset{
				Doc: "halves up to 4 MiB in regions of 32 MiB; larger requests get regions of their own, which are kept"},
			setting.Preset{Name: "whole", JSON: `{"growth":"whole","trim":"on","direct_bytes":"1EiB"}`,
				Doc: "the whole limit in one region, the tail of a block is returned to it, no more device calls"},
			setting.Preset{Name: "fibonacci", Doc: "sizes of blocks are Fibonacci numbers", JSON: `{"family":"fibonacci"}`},
			setting.Preset{Name: "lazy", JSON: `{"coalescing":"lazy"}`,
				Doc: "a few blocks of each size stay unmerged for the next request"},
			setting.Preset{Name: "regions",
				JSON: `{"growth":"fixed","region_bytes":"8MiB","region_choice":"fullest","release":true,"keep_bytes":"64MiB","direct_cache_bytes":"1GiB"}`,
				Doc:  "small regions, the fullest first; regions without a live block are returned"},
			setting.Preset{Name: "xdl", In: setting.Compared, JSON: `{"compat":"xdl"}`,
				Doc: "as Alibaba's XDL: leftmost, 1 GiB regions, 16 KiB blocks"},
		).WithOriginals(setting.SpecOf("buddy:xdl", "", buddyxdl.Open)),
		setting.SpecOf("slab", "classes of equal slots, with magazines and segments; or runs of units", slab.New,
			setting.Preset{Doc: "at least eight slots to a slab, the fullest slab first; the device for blocks above 256 KiB"},
			setting.Preset{Name: "magazines", JSON: `{"magazine_rounds":16,"depot":8}`,
				Doc: "freed slots go to stacks of 16 first, and a depot of eight full ones for each class"},
			setting.Preset{Name: "streams", JSON: `{"segments":8}`,
				Doc: "eight segments by stream, which use the slabs of others before a region is reserved"},
			setting.Preset{Name: "kept", JSON: `{"large_waste":16}`,
				Doc: "regions of freed blocks above 256 KiB are kept for blocks at most a sixteenth smaller"},
			setting.Preset{Name: "uniform", JSON: `{"slab_bytes":"64KiB","slab_slots":1,"max_class_bytes":"64KiB"}`,
				Doc: "slabs of 64 KiB for all classes, so that any class can use a free one"},
			setting.Preset{Name: "xdl", In: setting.Compared, JSON: `{"compat":"xdl"}`,
				Doc: "as Alibaba's XDL: runs of 1 to 4 units of 4 KiB in 32 segments"},
			setting.Preset{Name: "blaze", In: setting.Compared, JSON: `{"compat":"blaze"}`,
				Doc: "as XDL's blaze: power-of-two free lists over 1 GiB regions"},
		).WithOriginals(setting.SpecOf("slab:xdl", "", slabxdl.Open), setting.SpecOf("slab:blaze", "", blaze.New)),
		setting.SpecOf("slabbuddy", "slab for small, buddy for medium, the device for large requests", slabbuddy.New,
			setting.Preset{
				Doc: "slabs up to 32 KiB, cut from a buddy up to 1 MiB in one pool of regions; the device above, cached"},
			setting.Preset{Name: "fast", JSON: `{"slab_max_bytes":"1MiB","slab_slots":4,"empty_slabs":1,"magazine_rounds":8}`,
				Doc: "slabs up to 1 MiB; magazines, and an empty slab of each class kept"},
			setting.Preset{Name: "lean", JSON: `{"release":true,"direct_cache_bytes":"256MiB"}`,
				Doc: "regions without a live block are returned, and 256 MiB of freed single blocks kept"},
			setting.Preset{Name: "pages", JSON: `{"region_bytes":"2MiB"}`,
				Doc: "regions of whole pages of 2 MiB, for a device that charges whole pages"},
			setting.Preset{Name: "onepool",
				JSON: `{"region_bytes":"1GiB","growth":"fixed","block_bytes":"16KiB","slab_max_bytes":"16KiB","direct_bytes":"1GiB","direct_cache_bytes":1}`,
				Doc:  "XDL's bounds and regions of 1 GiB, but one pool of them instead of two"},
			setting.Preset{Name: "xdl", In: setting.Compared, Doc: "as Alibaba's XDL on GPUs", JSON: `{"compat":"xdl"}`},
		).WithOriginals(setting.SpecOf("slabbuddy:xdl", "", slabbuddyxdl.Open)),
	}
}

// deviceAllocators know streams or virtual memory, or pass each request to the device.
func deviceAllocators() setting.Catalogue {
	return setting.Catalogue{
		setting.SpecOf("caching", "PyTorch's caching allocator", caching.New,
			setting.Preset{In: untimed,
				Doc: "as PyTorch 2.11 without any setting: segments of 2 MiB, of 20 MiB, and of their own size from 10 MiB on"},
			setting.Preset{Name: "expandable", In: untimed, JSON: `{"conf":"expandable_segments:True"}`,
				Doc: "segments that grow by mapping pages"},
			setting.Preset{Name: "split", JSON: `{"conf":"max_split_size_mb:128"}`,
				Doc: "blocks from 128 MiB on are never split"},
			setting.Preset{Name: "2.6", Doc: "as PyTorch 2.6 without any setting", JSON: `{"rules":"2.6"}`},
			setting.Preset{Name: "2.12", Doc: "as PyTorch 2.12: of free blocks of one size the one created first",
				JSON: `{"rules":"2.12"}`},
			setting.Preset{Name: "2.13",
				Doc:  "as PyTorch 2.13 to 2.15: of free blocks of one size the one in the oldest segment",
				JSON: `{"rules":"2.13"}`},
			setting.Preset{Name: "mended", Doc: "the original's quirks mended", JSON: `{"mended":true}`},
		).KnownAs("torch", "pytorch", "cudacachingallocator", "native"),
		setting.SpecOf("async", "the driver's stream-ordered pool", async.New,
			setting.Preset{In: untimed,
				Doc: "as cudaMallocAsync is at first: regions of 32 MiB, and whenever the host synchronises those " +
					"without a block go back"},
			setting.Preset{Name: "keep", JSON: `{"release_threshold":"1EiB"}`,
				Doc: "nothing goes back before a request fails, as frameworks set it: JAX with " +
					"XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, PyTorch with backend:cudaMallocAsync"},
			setting.Preset{Name: "tensorflow", JSON: `{"release_threshold":"1EiB"}`,
				Doc: "TensorFlow with TF_GPU_ALLOCATOR=cuda_malloc_async: nothing goes back before a request fails"},
			setting.Preset{Name: "strict", JSON: `{"follow_events":"off","reuse_finished":"off","insert_waits":"off"}`,
				Doc: "memory freed by a stream serves other streams only after the host has synchronised"},
		).KnownAs("cudamallocasync", "cuda_malloc_async", "cuda_async"),
		setting.SpecOf("rmm", "the memory resources of RAPIDS Memory Manager: pool, arena, binning", rmm.New,
			setting.Preset{In: setting.Unlisted,
				Doc: "as PoolMemoryResource() in Python: best fit, a list for each stream, half of the free memory at first"},
			setting.Preset{Name: "pool", JSON: `{"initial_bytes":1}`,
				Doc: "a pool that starts empty; each region is as large as those before it together"},
			setting.Preset{Name: "arena", JSON: `{"resource":"arena"}`,
				Doc: "half of the free memory in superblocks, which an arena for each stream gets from a global one"},
			setting.Preset{Name: "binning", JSON: `{"resource":"binning"}`,
				Doc: "bins of 256 KiB to 4 MiB, 128 blocks each at first, over a pool for larger requests"}),
		setting.SpecOf("vmm", "ranges of addresses that grow by mapping pages and shrink by unmapping", vmm.New,
			setting.Preset{In: untimed,
				Doc: "one range of nine eighths of the device, pages of its granularity, which are kept until memory runs out"},
			setting.Preset{Name: "coarse", JSON: `{"page_bytes":"20MiB"}`,
				Doc: "pages of 20 MiB, as PyTorch's expandable segments have for large blocks"},
			setting.Preset{Name: "release", JSON: `{"release":true,"keep_bytes":"1GiB"}`,
				Doc: "free pages go back at once when more than 1 GiB is free"}),
		setting.SpecOf("stitch", "scattered pages joined under one address range, in the manner of GMLake", stitch.New,
			setting.Preset{In: untimed, Doc: "whole pages are stitched, memory is created for the missing part only"},
			setting.Preset{Name: "paper", JSON: `{"frag_limit":"512MiB","most_sblocks":2000}`,
				Doc: "as GMLake by default: requests from 512 MiB on are stitched, and ranges of 1000 GiB are kept"},
		).KnownAs("gmlake"),
		setting.SpecOf("direct", "the baseline: every block straight from the device", direct.New,
			setting.Preset{In: setting.Compared, Doc: "cudaMalloc for each request and cudaFree for each free; nothing is kept"},
		).KnownAs("cudamalloc"),
	}
}
