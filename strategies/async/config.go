package async

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/kit/streampool"
)

// The values of the switches.
const (
	On  = "on"  // enabled; the default
	Off = "off" // disabled
)

// mostRegion bounds regions and limits in bytes, so that sums of a few cannot overflow.
const mostRegion device.Size = 1 << 60

// Config describes a pool. The zero value has the defaults of the driver's pools.
type Config struct {
	// ReleaseThreshold is the number of bytes that stay when a poll releases empty regions.
	ReleaseThreshold device.Size `json:"release_threshold" doc:"bytes that stay when a poll releases empty regions" grid:"0,64MiB,1GiB,1EiB"`
	// FollowEvents reuses memory that another stream freed before an event for which the stream of
	// the request was made to wait: On or Off.
	FollowEvents string `json:"follow_events" doc:"reuse memory that another stream freed before an event that the request's stream waits for: on or off" grid:"on,off"`
	// ReuseFinished reuses memory that another stream freed if its work is complete: On or Off.
	ReuseFinished string `json:"reuse_finished" doc:"reuse memory that another stream freed if its work is complete: on or off" grid:"on,off"`
	// InsertWaits makes the stream of the request wait for the stream that freed the memory: On or
	// Off.
	InsertWaits string `json:"insert_waits" doc:"make a stream wait to reuse memory that another stream freed: on or off" grid:"on,off"`
	// RegionBytes is the smallest region.
	RegionBytes device.Size `json:"region_bytes" doc:"smallest region, a multiple of 512 (default 32MiB)" grid:"2MiB,8MiB,32MiB,128MiB,512MiB"`
	// Limit is the maximum of the bytes held from the device; 0 for none.
	Limit device.Size `json:"limit" doc:"limit on the bytes held from the device; 0 for none"`
}

// WithDefaults returns c with every default filled in. It fails with an error that names
// the first bad field.
func (c Config) WithDefaults() (Config, error) {
	for _, f := range []struct {
		name string
		v    *string
	}{{"follow_events", &c.FollowEvents}, {"reuse_finished", &c.ReuseFinished}, {"insert_waits", &c.InsertWaits}} {
		if *f.v == "" {
			*f.v = On
		}
		if *f.v != On && *f.v != Off {
			return c, fmt.Errorf("async: %s %q: want %q or %q", f.name, *f.v, On, Off)
		}
	}
	c.RegionBytes = cmp.Or(c.RegionBytes, streampool.DefaultRegion)
	switch {
	case c.RegionBytes%streampool.Quantum != 0 || c.RegionBytes > mostRegion:
		return c, fmt.Errorf("async: region_bytes %d: want a multiple of %d up to %v",
			uint64(c.RegionBytes), uint64(streampool.Quantum), mostRegion)
	case c.Limit != 0 && c.Limit < streampool.Quantum || c.Limit > mostRegion:
		return c, fmt.Errorf("async: limit %d: want 0, or %d up to %v", uint64(c.Limit), uint64(streampool.Quantum),
			mostRegion)
	}
	return c, nil
}

func (c Config) pool() streampool.Config {
	return streampool.Config{
		Region: c.RegionBytes, Limit: c.Limit, Threshold: c.ReleaseThreshold,
		FollowEvents: c.FollowEvents == On, ReuseFinished: c.ReuseFinished == On, InsertWaits: c.InsertWaits == On,
	}
}

// ForCapacity returns the configuration for a device of n bytes: Limit becomes n.
func (c Config) ForCapacity(n device.Size) Config {
	c.Limit = max(n, streampool.Quantum)
	return c
}

// Reduced implements [setting.ReducedConfig]: only polls read the threshold.
func (c Config) Reduced(d setting.Demand) Config {
	if !d.Polls {
		c.ReleaseThreshold = 0
	}
	return c
}

// Unbound implements [setting.UnboundConfig]: the limit only decides which requests are refused.
func (c Config) Unbound() bool { return true }

// Exports implements [setting.ExportedConfig]. PyTorch's backend cudaMallocAsync, TensorFlow's
// allocator cuda_malloc_async and JAX's cuda_async take their memory from the driver's pool, with
// every rule of reuse enabled. PyTorch has no release threshold. TensorFlow and JAX set it to the
// limit that BFC would have, so memory above it goes back; here it is unlimited too. Other
// configurations have no equivalent in these frameworks.
//
// Source: c10/cuda/CUDAMallocAsyncAllocator.cpp of PyTorch, lazy_init_device, and
// xla/stream_executor/gpu/gpu_cudamallocasync_allocator.cc.
func (c Config) Exports() []setting.Export {
	const never = device.Size(1) << 60
	kept := c.ReleaseThreshold >= never && c.RegionBytes == streampool.DefaultRegion
	if !kept || c.FollowEvents != On || c.ReuseFinished != On || c.InsertWaits != On {
		return nil
	}
	return []setting.Export{
		torchenv.Export("backend:cudaMallocAsync", "2.0"),
		{Framework: "TensorFlow", Environment: []string{"TF_GPU_ALLOCATOR=cuda_malloc_async"}},
		{Framework: "JAX", Environment: []string{"XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"}},
	}
}
