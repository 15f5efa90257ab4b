package tlsf

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var _ alloc.Placer = (*Allocator)(nil)

// CanPlace implements [alloc.Placer]. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = a.Placer(a.cfg.Promises())
	}
	return a.View.CanPlace(a.placer, r, freed)
}
