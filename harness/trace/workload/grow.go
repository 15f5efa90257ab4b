package workload

import "github.com/vramyard/vramyard/device"

// The buffers of w3: as many as a server has concurrent requests. They grow in units of a page of
// the key-value cache.
const (
	growBuffers             = 256
	growUnit    device.Size = 16 * device.KiB
)

// growParts returns the parts of w3.
func growParts(p Params) Parts { return Parts{Fill: growBuffers, Churn: 2 * p.Pairs} }

// grow generates w3. Buffer i alternates between the slots 2i and 2i+1 as it grows, because the new
// block is allocated before the old one is freed. With probability 1/32 its request ends and a new
// one takes its place.
func grow(p Params, s *sink) {
	rng := NewRand(p.Seed)
	fresh := func() device.Size { return 16 + device.Size(rng.Below(2048)) }
	var lengths [growBuffers]device.Size // in units of growUnit
	var slots [growBuffers]uint32        // current slot of each buffer
	for i := range lengths {
		lengths[i], slots[i] = fresh(), uint32(2*i)
		s.alloc(slots[i], lengths[i]*growUnit)
	}
	for range p.Pairs {
		if s.done {
			return
		}
		i := rng.Below(growBuffers)
		more := 1 + device.Size(rng.Below(64))
		if ends := rng.Below(32) == 0; ends {
			s.free(slots[i])
			lengths[i] = fresh()
			s.alloc(slots[i], lengths[i]*growUnit)
			continue
		}
		old := slots[i]
		slots[i] ^= 1
		lengths[i] += more
		s.alloc(slots[i], lengths[i]*growUnit)
		s.free(old)
	}
}
