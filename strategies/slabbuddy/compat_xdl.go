package slabbuddy

import "github.com/vramyard/vramyard/device"

// This file is the routing of mode "xdl"; all else the modes share.

// route returns the part that serves a request of n bytes. It depends on nothing else.
// The slab part refuses a request of none.
func (a *Parts) route(n device.Size) uint8 {
	switch {
	case n < a.cfg.BlockBytes:
		return OwnerSlab
	case n < a.cfg.RegionBytes:
		return OwnerBuddy
	}
	return OwnerDirect
}
