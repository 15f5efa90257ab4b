package props

import (
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// renewed checks invariant I67 after a request that ran out of memory just behind a trim that left
// nothing: a new instance, on a device of its own, does so too. A device that never hands out an
// address again is not as good as new.
func (r *runner) renewed() error {
	if !r.emptied || r.subject.Device.Policy == sim.Bump || r.main.faults.Injected() > r.injected || r.capturing() {
		return nil
	}
	fresh, err := newMachine(r.subject, device.FaultPlan{})
	if err != nil {
		return nil // it takes memory when it is built
	}
	defer fresh.abandon()
	for _, conf := range r.confs {
		_ = power.Configure(fresh.Strategy, conf) // it succeeded before
	}
	if b, err := fresh.Alloc(r.request); err == nil {
		return violated(IRenewed, "after a trim that left nothing %d bytes were refused; a new instance grants %d",
			uint64(r.request.Size), uint64(b.Size))
	}
	return nil
}

// renew requests the largest block ever granted from a heap without live blocks that was just
// trimmed, and frees it.
func (r *runner) renew() error {
	req := r.model.largest
	if req.Size == 0 {
		return nil
	}
	req.Tag, req.ID = r.ids+1, r.ids+1
	if err := r.call(Call{Op: Op{Kind: OpAlloc}, ID: req.ID, Request: req}); err != nil {
		return err
	}
	return r.drain()
}
