package offline

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
)

// Order is the order in which a greedy placement takes the buffers.
type Order = packing.Order

// The orders of [packing.Order].
const (
	BySize     = packing.BySize
	ByArea     = packing.ByArea
	ByLifetime = packing.ByLifetime
)

// Orders returns every order.
func Orders() []Order { return packing.Orders() }

// mostGreedy bounds the steps of a greedy placement to some tens of seconds. Traces of training and
// serving need 10 to 300 steps a buffer; more only occur with thousands of live buffers of random
// sizes and lifetimes.
const mostGreedy = 1 << 29

// Greedy places the buffers in the given order, as [packing.Problem.Pack] does. After 2^29 steps
// the remaining buffers go into slots above all others, and Stopped reports it.
func (p *Problem) Greedy(o Order) *Solution {
	return p.greedy(p.packer.Sorted(o), "greedy by "+string(o), mostGreedy)
}

// greedy packs the buffers in the order of a list, within a limit of steps.
func (p *Problem) greedy(list []int32, method string, limit uint64) *Solution {
	s := &Solution{Offsets: make([]device.Size, len(p.buffers)), Bound: p.total, Method: method}
	k := p.packer.Pack(list, nil, s.Offsets, limit)
	if k.Above > 0 {
		s.Stopped = fmt.Sprintf("%s: %d of %d buffers lie in slots above the others", stoppedSteps, k.Above, len(list))
	}
	s.Height, s.Steps = k.Height, k.Steps
	s.Optimal = s.Height == p.total
	return s
}
