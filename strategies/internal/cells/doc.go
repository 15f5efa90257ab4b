// Package cells is the engine of the slab strategies: size classes of equal slots in slabs, and
// magazines in front of them. A [Parent] gives it the memory of slabs: slices of regions in package
// slab, blocks of the buddy in slabbuddy. The comment of package slab describes the data
// structures, the search and the invariants, which start with C.
package cells
