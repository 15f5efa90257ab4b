package replay

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// refused replays a request that the recorded program was refused and survived: the block that is
// granted is freed at once. An observer sees a request and a free.
func (r *runner) refused(i int, o *op) (oom bool, err error) {
	if r.o.Observe == nil {
		oom, err = r.alloc(i, o)
	} else {
		request := *r.event(i)
		request.Kind = trace.Alloc
		oom, err = r.observed(i, o, &request)
	}
	if err != nil || !r.blocks[o.place].live {
		return oom, err
	}
	if r.series != nil {
		r.sample(i)
	}
	if r.o.Observe == nil {
		return false, r.free(i, o)
	}
	e := r.event(i)
	return r.observed(i, o, &trace.Event{Kind: trace.Free, ID: e.ID, Slot: e.Slot, Time: e.Time})
}

// notGranted counts a request that was not granted, and stores the verdict for its placement line
// in the size of its block.
func (r *runner) notGranted(i int, o *op, cause error) (oom bool, err error) {
	e := r.event(i)
	verdict := verdictInvalid
	switch {
	case errors.Is(cause, alloc.ErrOutOfMemory):
		r.res.OOMs++
		if r.series != nil {
			r.series.at(i).OOMs++
		}
		oom, verdict = true, verdictOOM
		if r.res.OOMs == 1 {
			r.decided(i + 1)
			r.firstOOM(e)
		}
	case !errors.Is(cause, alloc.ErrInvalidRequest):
		return false, fmt.Errorf("allocation %d of %d bytes: %w", e.ID, e.Size, cause)
	case e.Size == 0:
		r.res.Nulls++
		verdict = verdictNull
	default:
		r.res.Refused++
	}
	r.blocks[o.place] = block{size: verdict}
	if r.res.FirstFailure == nil && verdict != verdictNull {
		r.res.FirstFailure = r.describe(i, e, cause)
	}
	return oom, nil
}

// The size of a block that is not live encodes the outcome of its request.
const (
	verdictOOM device.Size = iota
	verdictNull
	verdictInvalid
)

// describe returns the details of a request that was not granted.
func (r *runner) describe(i int, e *trace.Event, cause error) *FirstFailure {
	r.clock.stop()
	defer r.clock.start()
	f := &FirstFailure{
		Event: i, ID: e.ID, Size: e.Size, Error: cause.Error(),
		LargestHole: power.LargestFree(r.s), Free: r.held() - r.active(),
	}
	if u := r.top.Usage(); u.Capacity != 0 {
		free := u.Free()
		f.DeviceFree = &free
	}
	if why, ok := power.LastRefusal(r.s); ok {
		f.Reason, f.DeviceAsked = why.Reason.String(), why.Asked
	}
	return f
}
