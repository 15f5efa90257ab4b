package slab

import "github.com/vramyard/vramyard/device"

// Config describes a slab allocator. The zero value of a field means its default.
type Config struct {
	// RegionBytes is the size of the smallest region, a multiple of SlabBytes.
	RegionBytes device.Size `json:"region_bytes" doc:"size of the smallest region" grid:"64KiB,1MiB,16MiB"`
	// Segments is the number of segments; default 1.
	Segments int `json:"segments" doc:"parts that share no slab" grid:"1,4,32"`
	// MaxClassBytes is the largest class of a family.
	MaxClassBytes device.Size `json:"max_class_bytes" doc:"largest class; what is larger gets a region of its own" grid:"16KiB,64KiB,256KiB,1MiB"`
	// Quantum is the unit of class sizes and of blocks beside them, a power of two.
	Quantum device.Size `json:"quantum" doc:"unit of class sizes and alignment that every block has, a power of two" grid:"256,512"`
	// SlabBytes is the size of the smallest slabs, a power of two of at most 4096 quanta.
	SlabBytes device.Size `json:"slab_bytes" doc:"size of the smallest slabs, a power of two of at most 4096 quanta" grid:"8KiB,64KiB,1MiB"`
	// SlabSlots is how many slots a slab has at least: larger classes have slabs 4, 16, ...
	// times as large, from regions of their own.
	SlabSlots int `json:"slab_slots" doc:"slots that a slab has at least; for large classes slabs are 4, 16, ... times as large" grid:"1,4,8,32"`
	// Classes is the family of class sizes.
	Classes string `json:"classes" doc:"class sizes: pow2, or k2, k4, k8 with so many for each doubling" grid:"pow2,k2,k4,k8"`
	// ClassSizes are class sizes in place of a family, for instance those of Learn.
	ClassSizes []device.Size `json:"class_sizes" doc:"class sizes in place of a family, for instance learned ones"`
	// Waste is the part of a slab that its last slot may leave: one in so many.
	Waste int `json:"waste" doc:"most that a class may leave unused at the end of a slab: one part in so many" grid:"4,8,16,64"`
	// Selection says which slab serves first.
	Selection string `json:"selection" doc:"slab that serves first: fullest, emptiest, lifo, fifo or lowest (address)" grid:"fullest,emptiest,lifo,fifo,lowest"`
	// EmptySlabs is how many slabs without a used slot a class keeps in each segment.
	EmptySlabs int `json:"empty_slabs" doc:"slabs without a live slot that each class of a segment keeps for itself" grid:"0,1,4"`
	// MagazineRounds is the number of slots in a magazine.
	MagazineRounds int `json:"magazine_rounds" doc:"slots in a magazine, a stack of free ones before the slabs; 0 for none" grid:"0,8,64"`
	// Depot is the number of full magazines that each class keeps beside those in use.
	Depot int `json:"depot" doc:"full magazines that each class keeps in its depot" grid:"0,4,16"`
	// Assign says which segment a request goes to.
	Assign string `json:"assign" doc:"segment of a request: stream, or round-robin" grid:"stream,round-robin"`
	// Steal says whether a segment uses what another one has before it asks for a region.
	Steal string `json:"steal" doc:"on: a segment uses free slots of others before a new region is asked for, or off" grid:"on,off"`
	// Growth is the kind of the growth of regions.
	Growth string `json:"growth" doc:"size of new regions: fixed, doubling, request, proportional or whole" grid:"fixed,doubling,request,proportional"`
	// Limit is the most to hold from the device; 0 for no bound.
	Limit device.Size `json:"limit" doc:"most to hold from the device; 0 for no bound"`
	// Release gives regions without a slab back.
	Release bool `json:"release" doc:"give regions without a slab back to the device at once" grid:"false,true"`
	// KeepBytes is what is kept of such regions all the same.
	KeepBytes device.Size `json:"keep_bytes" doc:"bytes in such regions that are kept although release is set" grid:"0,16MiB"`
}
