package rmm

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
)

// The values of Config.Resource.
const (
	Pool    = "pool"    // pool_memory_resource
	Arena   = "arena"   // arena_memory_resource
	Binning = "binning" // binning_memory_resource over a pool
)

// NoInitial is the value of Config.InitialBytes for a pool without a first region.
const NoInitial = 1

const (
	// quantum is the unit of sizes and addresses, CUDA_ALLOCATION_ALIGNMENT in the original.
	quantum device.Size = 256
	// leastSuperblock is the smallest part that a stream's arena gets from the global one.
	leastSuperblock device.Size = 1 << 20
	// mostBytes bounds requests, regions and limits, so that sums of a few cannot overflow.
	mostBytes device.Size = 1 << 60
	// unlimited is the free memory of a device that does not report any.
	unlimited device.Size = 1 << 40
	// mostBlocks bounds Config.BinBlocks.
	mostBlocks = 1 << 16
)

// The values of Config fields that are zero.
const (
	defaultMinBin    = 256 * device.KiB
	defaultMaxBin    = 4 * device.MiB
	defaultBinBlocks = 128
)

// Config describes a memory resource. The zero value is a pool that begins with half of the free
// memory.
type Config struct {
	// Resource is the memory resource: Pool, Arena or Binning.
	Resource string `json:"resource" doc:"memory resource: pool, arena, or binning over a pool" grid:"pool,arena,binning"`
	// InitialBytes is the size of the first region of a pool, or of an arena. Zero means half of the
	// free memory, NoInitial a pool without a first region.
	InitialBytes device.Size `json:"initial_bytes" doc:"first region of a pool, or the arena; 0 for half of the free memory, 1 for no first region (pool)" grid:"0,1,1GiB"`
	// Limit is the maximum size of a pool; 0 for none.
	Limit device.Size `json:"limit" doc:"maximum size of a pool; 0 for none"`
	// MinBinBytes is the size of the blocks of the smallest bin.
	MinBinBytes device.Size `json:"min_bin_bytes" doc:"binning: blocks of the smallest bin, a power of two" grid:"64KiB,256KiB"`
	// MaxBinBytes is the size of the blocks of the largest bin. There is a bin for each power of two
	// between the two.
	MaxBinBytes device.Size `json:"max_bin_bytes" doc:"binning: blocks of the largest bin, a power of two" grid:"1MiB,4MiB"`
	// BinBlocks is how many blocks a bin gets from the pool at once.
	BinBlocks int `json:"bin_blocks" doc:"binning: how many blocks a bin gets from the pool at once" grid:"16,32,64,128"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c.Resource = cmp.Or(c.Resource, Pool)
	c.MinBinBytes = cmp.Or(c.MinBinBytes, defaultMinBin)
	c.MaxBinBytes = cmp.Or(c.MaxBinBytes, max(defaultMaxBin, c.MinBinBytes))
	c.BinBlocks = cmp.Or(c.BinBlocks, defaultBinBlocks)
	first := c.InitialBytes
	if first == NoInitial {
		first = 0
	}
	switch {
	case c.Resource != Pool && c.Resource != Arena && c.Resource != Binning:
		return c, fmt.Errorf("rmm: resource %q: want %q, %q or %q", c.Resource, Pool, Arena, Binning)
	case first%quantum != 0 || first > mostBytes:
		return c, fmt.Errorf("rmm: initial_bytes %d: want 0, %d or a multiple of %d up to %v",
			uint64(c.InitialBytes), NoInitial, uint64(quantum), mostBytes)
	case c.Resource == Arena && c.InitialBytes != 0 && c.InitialBytes < leastSuperblock:
		return c, fmt.Errorf("rmm: initial_bytes %d: want at least %v for an arena", uint64(c.InitialBytes), leastSuperblock)
	case c.Limit != 0 && c.Limit < quantum || c.Limit > mostBytes:
		return c, fmt.Errorf("rmm: limit %d: want 0, or %d up to %v", uint64(c.Limit), uint64(quantum), mostBytes)
	case !device.IsPowerOfTwo(c.MinBinBytes) || c.MinBinBytes < quantum || c.MinBinBytes > device.GiB:
		return c, fmt.Errorf("rmm: min_bin_bytes %d: want a power of two from %d to %v",
			uint64(c.MinBinBytes), uint64(quantum), device.GiB)
	case !device.IsPowerOfTwo(c.MaxBinBytes) || c.MaxBinBytes < c.MinBinBytes || c.MaxBinBytes > device.GiB:
		return c, fmt.Errorf("rmm: max_bin_bytes %d: want a power of two from min_bin_bytes %d to %v",
			uint64(c.MaxBinBytes), uint64(c.MinBinBytes), device.GiB)
	case c.BinBlocks < 1 || c.BinBlocks > mostBlocks:
		return c, fmt.Errorf("rmm: bin_blocks %d: want 1 to %d", c.BinBlocks, mostBlocks)
	}
	return c, nil
}

// ForCapacity returns the configuration for a device of n bytes: a limit becomes n. Without one the
// device alone limits a pool.
func (c Config) ForCapacity(n device.Size) Config {
	if c.Limit != 0 {
		c.Limit = max(n, quantum)
	}
	return c
}

// Reduced implements [setting.ReducedConfig]: an arena has no limit, and only binning has bins.
func (c Config) Reduced(setting.Demand) Config {
	if c.Resource == Arena {
		c.Limit = 0
	}
	if c.Resource != Binning {
		c.MinBinBytes, c.MaxBinBytes, c.BinBlocks = defaultMinBin, defaultMaxBin, defaultBinBlocks
	}
	return c
}

// bins returns the number of bins.
func (c Config) bins() (n int) {
	if c.Resource == Binning {
		for size := c.MinBinBytes; size <= c.MaxBinBytes; size *= 2 {
			n++
		}
	}
	return n
}

// binOf returns the number of the bin for a request, or the number of bins if none is large enough.
func (c Config) binOf(size device.Size) int {
	k, n := 0, c.bins()
	for k < n && c.MinBinBytes<<k < size {
		k++
	}
	return k
}

// blockFor returns the bytes of the block for a request.
func (c Config) blockFor(n device.Size) device.Size {
	if k := c.binOf(n); k < c.bins() {
		return c.MinBinBytes << k
	}
	return device.AlignUp(n, quantum)
}
