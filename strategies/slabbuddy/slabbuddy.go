package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// New returns the allocator that c describes over src: [Layers], or in mode "xdl" [Parts].
// It holds nothing yet. New fails if c is invalid.
func New(src device.Source, c Config) (alloc.Strategy, error) {
	if c.Compat == CompatXDL {
		return strategy(NewParts(src, c))
	}
	return strategy(NewLayers(src, c))
}

// strategy returns a, or no strategy at all if err is set, where a nil pointer in an
// interface would pass for one.
func strategy[S alloc.Strategy](a S, err error) (alloc.Strategy, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}
