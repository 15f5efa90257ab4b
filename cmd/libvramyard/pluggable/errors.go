package pluggable

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// OutOfMemoryError is the error of a request that found no memory. Sizes are bytes. The text has
// the form of PyTorch's message.
type OutOfMemoryError struct {
	Device    int         // number of the GPU
	Size      device.Size // bytes requested
	Total     device.Size // capacity of the GPU; 0 if unbounded
	Free      device.Size // free memory of the GPU
	Bound     device.Size // limit on the bytes held; 0 for none
	Allocated device.Size // bytes of live blocks
	Pending   device.Size // freed bytes that other streams still use
	Reserved  device.Size // bytes held from the GPU
	Hole      device.Size // largest free chunk
	Strategy  string      // name of the strategy
	Never     bool        // the request exceeds the strategy's largest request
}

func (e *OutOfMemoryError) Error() string {
	text := fmt.Sprintf("CUDA out of memory. Tried to allocate %s. GPU %d", inUnits(e.Size), e.Device)
	if e.Total > 0 {
		text += fmt.Sprintf(" has a total capacity of %s of which %s is free.", inUnits(e.Total), inUnits(e.Free))
	} else {
		text += " has no bound."
	}
	if e.Bound > 0 {
		text += fmt.Sprintf(" Of it %s are allowed.", inUnits(e.Bound))
	}
	if e.Never {
		text += " Strategy " + e.Strategy + " never grants a block of this size."
	}
	text += fmt.Sprintf(" Of the memory of strategy %s %s is allocated by PyTorch, and %s is reserved but unallocated,",
		e.Strategy,
		inUnits(e.Allocated), inUnits(e.Reserved-e.Allocated-e.Pending))
	return text + fmt.Sprintf(" the largest hole being %s; %s waits for other streams.", inUnits(e.Hole),
		inUnits(e.Pending))
}

func inUnits(n device.Size) string {
	switch {
	case n < device.KiB:
		return fmt.Sprintf("%d bytes", uint64(n))
	case n < device.MiB:
		return fmt.Sprintf("%.2f KiB", float64(n)/float64(device.KiB))
	case n < device.GiB:
		return fmt.Sprintf("%.2f MiB", float64(n)/float64(device.MiB))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/float64(device.GiB))
}

func (n *instance) refusal(size device.Size, cause error) error {
	if !errors.Is(cause, alloc.ErrOutOfMemory) && !errors.Is(cause, alloc.ErrInvalidRequest) {
		return cause
	}
	s := n.strategy.Stats()
	e := &OutOfMemoryError{
		Device: n.ordinal, Size: size, Total: n.total, Bound: n.dev.most, Allocated: s.Allocated,
		Pending: s.Active - s.Allocated, Reserved: s.Reserved, Hole: power.LargestFree(n.strategy), Strategy: n.name,
		Never: errors.Is(cause, alloc.ErrInvalidRequest),
	}
	if info, ok := device.MemoryInfoOf(n.dev); ok {
		e.Free, _, _ = info.MemoryInfo() // 0 if the device does not report it
	}
	return e
}
