package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/internal/planted"
)

// spoilGrant does to a block just granted what the planted bug is about. Without one, and in
// every ordinary build, it does nothing.
func (a *Allocator) spoilGrant(h handle, r *alloc.Request) {
	switch c := &a.chunks.rows[h]; {
	case planted.Is("bfc/not-indexed"):
		a.live.Delete(c.addr, a.chunks.addrOf)
	case planted.Is("bfc/requested-forgotten"):
		a.chunks.setRequested(h, 0)
	case planted.Is("bfc/tag-forgotten"):
		a.chunks.setLabel(h, label{stream: r.Stream})
	case planted.Is("bfc/stream-forgotten"):
		a.chunks.setLabel(h, label{tag: r.Tag})
	case planted.Is("bfc/count-kept") && a.cfg.Timing:
		a.chunks.freedAt[h] = a.clock
	case planted.Is("bfc/live-by-two") && a.stats.Live > 1:
		a.regionOf(h).live++
	}
}
