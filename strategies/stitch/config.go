package stitch

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// quantum is the unit of sizes below a page: PyTorch's smallest block.
const quantum device.Size = 512

// The values of Config fields that are zero.
const (
	defaultChunk       = 2 * device.MiB // a page of drivers, the source's kGranularity
	defaultSmall       = 2 * device.MiB // the source's kSmallBuffer
	defaultFragLimit   = 2 * device.MiB // every request that takes pages
	defaultMostSBlocks = 512            // measured, see docs/strategies/stitch.md
)

// The bounds of fields, and of requests.
const (
	mostChunk                   = device.GiB      // larger than the pages of any driver
	mostSmall                   = 16 * device.GiB // likewise
	mostFragLimit   device.Size = 1 << 60         // no request is stitched
	mostMostSBlocks             = 1 << 20         // keeps the tables small
	mostPages                   = 1 << 14         // of a request, because each takes two device calls
)

// Config describes a stitching allocator. The zero value stitches every request of at least a page
// of 2 MiB.
type Config struct {
	// ChunkBytes is the size of a page, the unit in which memory is created and mapped.
	ChunkBytes device.Size `json:"chunk_bytes" doc:"bytes of a page, a power of two: the unit in which memory is created and mapped; requests below it go to the small pool" grid:"2MiB,4MiB,8MiB,16MiB"`
	// SmallBytes is the size of a region of the small pool, which is not stitched.
	SmallBytes device.Size `json:"small_bytes" doc:"bytes of a region of the pool for requests below a page" grid:"2MiB,8MiB,32MiB"`
	// FragLimit is the size in bytes of the smallest request that is stitched.
	FragLimit device.Size `json:"frag_limit" doc:"the smallest request for which free memory is stitched" grid:"2MiB,16MiB,64MiB,512MiB,1EiB"`
	// MostSBlocks is the largest number of sBlocks.
	MostSBlocks int `json:"most_sblocks" doc:"largest number of sBlocks; beyond it the one that has been idle longest is undone" grid:"64,512,4096,32768"`
	// Limit is the maximum of the bytes held from the device; 0 for none.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.ChunkBytes = cmp.Or(c.ChunkBytes, defaultChunk)
	c.SmallBytes = cmp.Or(c.SmallBytes, defaultSmall)
	c.FragLimit = cmp.Or(c.FragLimit, defaultFragLimit)
	c.MostSBlocks = cmp.Or(c.MostSBlocks, defaultMostSBlocks)
	switch {
	case !device.IsPowerOfTwo(c.ChunkBytes) || c.ChunkBytes < quantum || c.ChunkBytes > mostChunk:
		return c, fmt.Errorf("stitch: chunk_bytes %d: want a power of two from %v to %v", uint64(c.ChunkBytes),
			quantum, mostChunk)
	case c.SmallBytes%quantum != 0 || c.SmallBytes > mostSmall:
		return c, fmt.Errorf("stitch: small_bytes %d: want a multiple of %v up to %v", uint64(c.SmallBytes),
			quantum, mostSmall)
	case c.FragLimit > mostFragLimit:
		return c, fmt.Errorf("stitch: frag_limit %d: want at most %v", uint64(c.FragLimit), mostFragLimit)
	case c.MostSBlocks < 1 || c.MostSBlocks > mostMostSBlocks:
		return c, fmt.Errorf("stitch: most_sblocks %d: want 1 to %d", c.MostSBlocks, mostMostSBlocks)
	}
	return c, nil
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = n
	return c
}
