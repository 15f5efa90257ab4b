package bfc

import (
	"cmp"
	"fmt"
	"math"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
)

// Variant names a state of the original whose rules the allocator follows.
type Variant string

// The variants; the package comment says how they differ.
const (
	V2016 Variant = "2016" // TensorFlow 0.10
	V2024 Variant = "2024" // TensorFlow 2.17 and the jaxlib of that year; the default
	V2026 Variant = "2026" // XLA of August 2026
)

// defaultLimit is the limit of a Config that sets none. It is above any card, so that the
// device runs out first.
const defaultLimit = device.TiB

// jaxFraction is the share of a card that JAX uses by default, whether it grows or not.
const jaxFraction = 0.75

// Config describes a BFC allocator. The zero value is the allocator of 2024 that takes its
// whole limit of 1 TiB at once, or as much of it as the device grants.
type Config struct {
	// Variant selects the rules; default V2024.
	Variant Variant `json:"variant" doc:"release to follow: 2016 (TensorFlow 0.10), 2024 (TensorFlow 2.17) or 2026 (XLA)" grid:"2016,2024,2026"`
	// Limit is the maximum of the bytes held from the device; default 1 TiB.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for 1TiB, which no card has, so that the device is the limit"`
	// MemoryFraction bounds the bytes held to a share of the device's memory, in addition to Limit;
	// 0 for no such bound. It is ignored on a device that does not report its memory.
	MemoryFraction float64 `json:"memory_fraction,omitzero" doc:"limit as a share of the device's memory: per_process_gpu_memory_fraction in TensorFlow, XLA_PYTHON_CLIENT_MEM_FRACTION in JAX, which has 0.75; 0 for none. The smaller of it and limit applies"`
	// ComputeCapability is the major compute capability of the GPU, by which TensorFlow leaves
	// memory to the libraries of CUDA unless MemoryFraction is set; 0 to leave none. It is ignored
	// on a device that does not report its memory.
	ComputeCapability int `json:"compute_capability,omitzero" doc:"major compute capability of the GPU, by which TensorFlow leaves memory to CUDA's libraries if memory_fraction is 0; 0 to leave none"`
	// AllowGrowth takes regions as they are needed instead of the whole limit at once.
	AllowGrowth bool `json:"allow_growth" doc:"take regions as needed, each twice the last, instead of the whole limit at once" grid:"false,true"`
	// GarbageCollection gives regions without live blocks back when a request would fail.
	GarbageCollection bool `json:"garbage_collection" doc:"give regions without live blocks back when a request would fail" grid:"false,true"`
	// FragmentationFraction of Limit is the waste from which a chunk is split even if it is smaller
	// than twice the request; 0 or less means 128 MiB.
	FragmentationFraction float64 `json:"fragmentation_fraction" doc:"split off remainders from this share of the limit on; 0 means from 128MiB on" grid:"0,0.0001,0.001,0.01"`
	// CoalesceRegions joins a new region to an adjacent one below it.
	CoalesceRegions bool `json:"coalesce_regions" doc:"join a new region to an adjacent one below it, as over virtual memory" grid:"false,true"`
	// Timing stamps each free with a count and merges only chunks below the safe frontier.
	Timing bool `json:"timing" doc:"stamp frees with a count and merge only chunks below the safe frontier"`
	// Spatial splits the memory into a lower and an upper end that grow towards each other.
	Spatial bool `json:"spatial" doc:"two-ended arena, requests name their end; needs variant 2026, no allow_growth" grid:"false,true"`
	// AllocationIDs numbers the blocks, in 8 bytes of host memory a chunk.
	AllocationIDs bool `json:"allocation_ids,omitzero" doc:"number blocks as they are granted, as the original does; costs 8 bytes a chunk"`
	// Conf sets other fields by the names that TensorFlow and JAX give them: NAME=VALUE, separated
	// by spaces. Its values replace theirs. It is empty once the defaults are filled in.
	Conf string `json:"conf,omitempty" doc:"settings by their names in TensorFlow and JAX, separated by spaces, which replace the others: TF_FORCE_GPU_ALLOW_GROWTH, TF_ENABLE_GPU_GARBAGE_COLLECTION, allow_growth, per_process_gpu_memory_fraction, XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_MEM_FRACTION or XLA_CLIENT_MEM_FRACTION, such as XLA_PYTHON_CLIENT_MEM_FRACTION=0.9"`
	// Mended repairs known defects of the original; the package comment lists them.
	Mended bool `json:"mended" doc:"repair known defects of the original instead of reproducing them" grid:"false,true"`
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n, unless
// MemoryFraction or ComputeCapability follows the device by itself.
func (c Config) ForCapacity(n device.Size) Config {
	if !c.followsDevice() {
		c.Limit = n
	}
	return c
}

// followsDevice reports whether the limit depends on the memory of the device.
func (c Config) followsDevice() bool { return c.MemoryFraction > 0 || c.ComputeCapability > 0 }

// Preallocates reports whether the allocator reserves its whole limit with the first request, so
// that the reserved bytes are independent of the demand.
func (c Config) Preallocates() bool { return !c.AllowGrowth }

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	c, err := c.withConf()
	if err != nil {
		return c, fmt.Errorf("bfc: conf: %w", err)
	}
	c.Variant = cmp.Or(c.Variant, V2024)
	c.Limit = cmp.Or(c.Limit, defaultLimit)
	switch c.Variant {
	case V2016, V2024, V2026:
	default:
		return c, fmt.Errorf("bfc: variant %q: want %q, %q or %q", c.Variant, V2016, V2024, V2026)
	}
	if f := c.FragmentationFraction; math.IsNaN(f) || math.IsInf(f, 0) {
		return c, fmt.Errorf("bfc: fragmentation_fraction: %v is no number of bytes in a limit", f)
	} else if f*float64(c.Limit) >= math.MaxInt64 {
		return c, fmt.Errorf("bfc: fragmentation_fraction: %v of the limit does not fit 63 bits", f)
	}
	if f := c.MemoryFraction; !(f >= 0 && f <= 1) {
		return c, fmt.Errorf("bfc: memory_fraction: %v: want a share of the device from 0 to 1", f)
	}
	if n := c.ComputeCapability; n < 0 || n > mostCapability {
		return c, fmt.Errorf("bfc: compute_capability: %d: want the major version, from 1 to %d, or 0", n, mostCapability)
	}
	return c, c.checkVariant()
}

// mostCapability bounds the major compute capability, to detect 75 for 7.5.
const mostCapability = 30

// onDevice returns the configuration for the device behind src: MemoryFraction or ComputeCapability
// becomes a limit in bytes, as when the original starts.
func (c Config) onDevice(src device.Source) (Config, error) {
	info, ok := device.MemoryInfoOf(src)
	if !c.followsDevice() || !ok {
		return c, nil
	}
	_, total, err := info.MemoryInfo()
	switch {
	case err != nil:
		return c, fmt.Errorf("bfc: the memory of the device: %w", err)
	case total == 0: // the device is unlimited
	case c.MemoryFraction > 0:
		c.Limit = min(c.Limit, max(device.Size(c.MemoryFraction*float64(total)), 1))
	default:
		c.Limit = min(c.Limit, total-c.reserve(total))
	}
	return c, nil
}

// reserve returns the bytes of a device with n bytes that TensorFlow leaves to the libraries of
// CUDA.
//
// Source: MinSystemMemory and SingleVirtualDeviceMemoryLimit in
// tensorflow/core/common_runtime/gpu/gpu_device.cc, since pull request 44810 of November 2020.
func (c Config) reserve(n device.Size) device.Size {
	var bytes device.Size
	switch {
	case n < 2*device.GiB:
		bytes = 225 * device.MiB
	case c.ComputeCapability <= 6:
		bytes = 500 * device.MiB
	case c.ComputeCapability == 7:
		bytes = 1050 * device.MiB
	case c.ComputeCapability == 8:
		bytes = 1536 * device.MiB
	default:
		bytes = 1800 * device.MiB
	}
	if bytes >= n {
		return 0
	}
	return bytes
}

// checkVariant returns an error that names the first option that the variant did not have.
func (c Config) checkVariant() error {
	if c.Spatial && c.Variant != V2026 {
		return fmt.Errorf("bfc: spatial: needs variant %q", V2026)
	}
	if c.Spatial && c.AllowGrowth {
		return fmt.Errorf("bfc: spatial: excludes allow_growth")
	}
	if c.Variant != V2016 {
		return nil
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"garbage_collection", c.GarbageCollection},
		{"fragmentation_fraction", c.FragmentationFraction > 0},
		{"coalesce_regions", c.CoalesceRegions},
		{"timing", c.Timing},
	} {
		if option.set {
			return fmt.Errorf("bfc: %s: variant %q has none", option.name, V2016)
		}
	}
	return nil
}

// Share implements [setting.ShareConfig].
func (c Config) Share() float64 { return c.MemoryFraction }

// WithShare implements [setting.ShareConfig].
func (c Config) WithShare(share float64) Config {
	c.MemoryFraction = share
	return c
}

// Exports implements [setting.ExportedConfig]. By default TensorFlow takes nearly the whole memory
// of the card in one region, and releases regions without live blocks. Environment variables can
// turn both off, and an option sets a share of the card; other settings and the rules of other
// years cannot be chosen. JAX takes a share of the card and never releases regions.
//
// Source: tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc, and
// xla/pjrt/gpu/gpu_helpers.cc.
func (c Config) Exports() []setting.Export {
	c.Limit, c.AllocationIDs, c.ComputeCapability = 0, false, 0
	plain := Config{Variant: V2024, MemoryFraction: c.MemoryFraction, AllowGrowth: c.AllowGrowth,
		GarbageCollection: c.GarbageCollection}
	switch {
	case c != plain:
		return nil
	case c.MemoryFraction > 0 && !c.GarbageCollection:
		return []setting.Export{c.exportToJAX(), c.exportToTensorFlow()}
	}
	return []setting.Export{c.exportToTensorFlow()}
}

// exportToTensorFlow returns the settings of TensorFlow. The share of the card has no variable.
func (c Config) exportToTensorFlow() setting.Export {
	e := setting.Export{Framework: "TensorFlow"}
	if c.AllowGrowth {
		e.Environment = append(e.Environment, varForceGrowth+"=true")
	}
	if !c.GarbageCollection {
		e.Environment = append(e.Environment, varCollection+"=false")
	}
	if c.MemoryFraction > 0 {
		option := fmt.Sprintf("%s=%v", optionFraction, c.MemoryFraction)
		e.Options = []string{option}
		e.Python = []string{"session = tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(" +
			"gpu_options=tf.compat.v1.GPUOptions(" + option + ")))"}
	}
	return e
}

// exportToJAX returns the variables by which JAX grows, or takes another share than its own.
func (c Config) exportToJAX() setting.Export {
	e := setting.Export{Framework: "JAX"}
	if c.AllowGrowth {
		e.Environment = append(e.Environment, varPreallocate+"=false")
	}
	if c.MemoryFraction != jaxFraction {
		e.Environment = append(e.Environment, fmt.Sprintf("%s=%v", varFraction, c.MemoryFraction))
	}
	return e
}
