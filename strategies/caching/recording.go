package caching

import (
	"github.com/vramyard/vramyard/device"
)

// BlockSizes holds the settings that determine block sizes, for readers of recordings that contain
// only requested sizes.
type BlockSizes struct {
	// Round returns the rounded size of a request in bytes.
	//
	// Precondition: the request is of 1 to 2^60 - 1 bytes.
	Round func(device.Size) device.Size
	// Segment returns the size of a new segment for a rounded size, unless segments grow.
	Segment func(device.Size) device.Size
	// Unsplit is the least size of unsplittable blocks, or the largest size if all are split.
	Unsplit device.Size
}

// BlockSizes returns the settings of the configuration. It fails like [New].
func (c Config) BlockSizes() (BlockSizes, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return BlockSizes{}, err
	}
	s, err := c.settings()
	return BlockSizes{Round: s.round, Segment: s.segmentSize, Unsplit: s.maxSplit}, err
}
