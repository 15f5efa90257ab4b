package caching

import (
	"github.com/vramyard/vramyard/device"
)

// BlockSizes is what of the settings shows in the sizes of blocks, for who reads a recording that
// tells only what was asked for.
type BlockSizes struct {
	// Round returns the bytes of the block that a request of so many bytes is looked for.
	//
	// Precondition: the request is of 1 to 2^60 - 1 bytes.
	Round func(device.Size) device.Size
	// Segment returns the bytes that the device is asked for where no block serves one of so many
	// bytes, unless segments grow.
	Segment func(device.Size) device.Size
	// Unsplit is the size from which on a block is never split; the largest size there is
	// where there is none.
	Unsplit device.Size
}

// BlockSizes returns what the configuration makes of sizes. It fails like [New].
func (c Config) BlockSizes() (BlockSizes, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return BlockSizes{}, err
	}
	s, err := c.settings()
	return BlockSizes{Round: s.round, Segment: s.segmentSize, Unsplit: s.maxSplit}, err
}
