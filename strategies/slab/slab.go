package slab

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// New returns the allocator that c describes over src. It fails if c is invalid, or in
// mode "blaze", which takes its first region here, with the device's error.
func New(src device.Source, c Config) (alloc.Strategy, error) {
	switch c.Compat {
	case CompatXDL:
		return strategy(NewRuns(src, c))
	case CompatBlaze:
		return strategy(NewLists(src, c))
	case "":
		return strategy(NewCaches(src, c))
	}
	_, err := c.WithDefaults() // which names the values that there are
	return nil, err
}

// strategy returns a, or no strategy at all if err is set, where a nil pointer in an
// interface would pass for one.
func strategy[S alloc.Strategy](a S, err error) (alloc.Strategy, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}
