package workload

import "github.com/vramyard/vramyard/device"

// The buffers of w3: as many as a server has requests under way, in pieces of the size of a
// page of the key-value cache.
const (
	growBuffers             = 256
	growUnit    device.Size = 16 * device.KiB
)

// growParts returns the parts of w3.
func growParts(p Params) Parts { return Parts{Fill: growBuffers, Churn: 2 * p.Pairs} }

// grow makes w3. Buffer i has the slots 2i and 2i+1 and changes between them as it grows,
// because the new block is there before the old one goes. One time in 32 its request ends
// and another takes its place.
func grow(p Params, s *sink) {
	rng := NewRand(p.Seed)
	fresh := func() device.Size { return 16 + device.Size(rng.Below(2048)) }
	var lengths [growBuffers]device.Size // in units
	var slots [growBuffers]uint32        // that the buffer is in now
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
