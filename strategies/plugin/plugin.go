package plugin

import (
	"fmt"
	"runtime"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/standin"
	"github.com/vramyard/vramyard/kit/index"
)

// Allocator is an instance of a plug-in. Use [New]; it is not safe for concurrent use. The process
// of an instance that is not closed ends when the Allocator is garbage collected, or with the
// program.
type Allocator struct {
	cfg       Config
	limit     time.Duration         // time limit of a call
	instance  *instance             // the process
	memory    *standin.Memory       // memory held from the device
	live      index.AddrList[block] // live blocks by address
	closed    bool
	fault     *Fault        // what ended the instance
	calls     uint64        // number of calls of the plug-in
	lastCall  call          // the last call
	workTime  uint64        // nanoseconds that calls of Alloc and Free took
	exception string        // exception of the last request that found no memory
	stats     alloc.Stats   // without the device's part, which memory counts
	refusal   power.Refusal // of the last request that was refused
}

// block is the record of a live block.
type block struct {
	size   device.Size   // bytes requested; the granted bytes are unknown
	stream device.Stream // stream of the request; passed again to free
	tag    uint64        // of the request
}

var (
	_ alloc.Strategy       = (*Allocator)(nil)
	_ power.Trimmer        = (*Allocator)(nil)
	_ power.StreamRecorder = (*Allocator)(nil)
	_ power.Failure        = (*Allocator)(nil)
	_ power.Reporter       = (*Allocator)(nil)
	_ power.Clearer        = (*Allocator)(nil)
	_ power.SelfTimed      = (*Allocator)(nil)
)

// New returns a fresh instance of the plug-in, whose CUDA calls are answered by src. The first
// instance takes some tens of milliseconds, or seconds if the host has to be compiled. Others are
// forked from the same host in a millisecond or two. It fails if c is invalid, if the plug-in
// cannot be loaded, or with a [*Fault] if its first call violates the contract.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	i, err := newInstance(&c)
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c, limit: c.timeout(), instance: i}
	a.memory = standin.NewMemory(src)
	a.memory.Released, a.memory.Foreign = a.onRelease, a.foreign
	runtime.AddCleanup(a, func(i *instance) { i.end() }, i)
	if _, err := a.call(call{op: callStart, arg: [4]uint64{uint64(c.Device) + 1}}); err != nil {
		_ = a.Close() // the first error says more
		return nil, err
	}
	a.calls = 0
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// call makes a call of the plug-in. The error is the Fault that ended the instance.
func (a *Allocator) call(k call) (reply, error) {
	if a.fault != nil {
		return reply{}, a.fault
	}
	a.calls++
	a.lastCall = k
	a.memory.Outcome = standin.Outcome{}
	r, what := a.instance.ask(k, a.limit, a.memory.Serve)
	switch {
	case what == ended:
		a.recordFault(brokenNoPanic, a.instance.ending())
	case what == timedOut:
		a.recordFault(brokenTerminates, "it did not return within "+a.cfg.Timeout)
	case r.verdict == verdictUnloaded:
		a.recordFault(brokenNoPanic, a.cfg.Path+" cannot be loaded: "+a.instance.exceptionText())
	case r.verdict == verdictThrew && k.op != callAlloc:
		a.recordFault(brokenNoPanic, "it threw an exception: "+a.instance.exceptionText())
	}
	if a.fault != nil {
		a.instance.end()
		return reply{}, a.fault
	}
	if k.op == callAlloc || k.op == callFree {
		a.workTime += r.ns
	}
	return r, nil
}

// recordFault records a violation by the last call, unless one is recorded already.
func (a *Allocator) recordFault(broken, what string) {
	if a.fault == nil {
		a.fault = &Fault{Call: a.calls, Doing: a.cfg.describe(a.lastCall), What: what, Broken: broken}
	}
}

// endWithFault records a violation, ends the instance and returns the Fault.
func (a *Allocator) endWithFault(broken, what string) error {
	a.recordFault(broken, what)
	a.instance.end()
	return a.fault
}

// Alloc implements [alloc.Allocator]. It costs a round trip to the plug-in's process, the plug-in's
// own work and O(log live blocks).
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	switch {
	case a.closed:
		return alloc.Block{}, alloc.ErrClosed
	case a.fault != nil:
		return alloc.Block{}, a.fault
	case r.Align != 0 && (!device.IsPowerOfTwo(r.Align) || r.Align > a.cfg.Align):
		a.recordRefusal(&r, power.ReasonAlignment)
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	got, err := a.call(call{callAlloc, [4]uint64{uint64(r.Size), uint64(a.cfg.Device), uint64(r.Stream)}})
	if err != nil {
		return alloc.Block{}, err
	}
	at := device.Addr(got.result)
	a.exception = ""
	if got.verdict == verdictThrew {
		at, a.exception = 0, a.instance.exceptionText()
	}
	switch {
	case r.Size == 0:
		return alloc.Block{}, a.emptyRequest(&r, at, got.verdict == verdictReturned)
	case at == 0:
		a.stats.OOMs++
		a.recordRefusal(&r, power.ReasonLimit)
		if out := a.memory.Outcome; out.Refusal != nil {
			a.refusal.Reason, a.refusal.Asked, a.refusal.Device = power.ReasonDevice, out.Asked, out.Refusal
		}
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	return a.granted(&r, at)
}

// emptyRequest completes a request for no bytes as PyTorch does: the returned pointer, null
// included, is freed at once.
func (a *Allocator) emptyRequest(r *alloc.Request, at device.Addr, free bool) error {
	if _, found := a.live.Search(at); found {
		return a.endWithFault(brokenDisjoint, fmt.Sprintf("it returned %v, where a live block starts", at))
	}
	if free {
		if _, err := a.call(call{callFree, [4]uint64{uint64(at), 0, uint64(a.cfg.Device), uint64(r.Stream)}}); err != nil {
			return err
		}
	}
	a.recordRefusal(r, power.ReasonZero)
	return alloc.ErrInvalidRequest
}

// granted checks the pointer that the plug-in returned and records the block.
func (a *Allocator) granted(r *alloc.Request, at device.Addr) (alloc.Block, error) {
	p, found := a.live.Search(at)
	switch {
	case found:
		return alloc.Block{}, a.endWithFault(brokenDisjoint, fmt.Sprintf(
			"it returned %v, where a live block of %d bytes starts", at, uint64(a.live.Entry(p).Value.size)))
	case r.Size > ^device.Size(at):
		return alloc.Block{}, a.endWithFault(brokenContained, fmt.Sprintf(
			"it returned %v: a block of %d bytes there exceeds the address space", at, uint64(r.Size)))
	}
	if other, b, ok := a.liveIn(device.Region{Addr: at, Size: r.Size}); ok {
		return alloc.Block{}, a.endWithFault(brokenDisjoint,
			fmt.Sprintf("it returned %v: %d bytes there overlap live block %v of %d bytes",
				at, uint64(r.Size), other, uint64(b.size)))
	}
	if !at.IsAligned(a.cfg.Align) {
		return alloc.Block{}, a.endWithFault(brokenAligned, fmt.Sprintf("it returned %v, want a multiple of %d", at,
			uint64(a.cfg.Align)))
	}
	if !a.memory.Usable(at, r.Size) {
		return alloc.Block{}, a.endWithFault(brokenContained,
			fmt.Sprintf("it returned %v: %d bytes there are not within one region or mapping that it holds",
				at, uint64(r.Size)))
	}
	a.live.Insert(p, index.AddrEntry[block]{Addr: at, Value: block{r.Size, r.Stream, r.Tag}})
	a.stats.Granted(r.Size, r.Size)
	return alloc.Block{Addr: at, Size: r.Size}, nil
}

// liveIn returns the first live block that overlaps r.
func (a *Allocator) liveIn(r device.Region) (at device.Addr, b block, ok bool) {
	p, found := a.live.Floor(r.Addr)
	if found {
		if e := a.live.Entry(p); e.Addr.Add(e.Value.size) > r.Addr {
			return e.Addr, e.Value, true
		}
	}
	p, _ = a.live.Search(r.Addr)
	if p = a.live.Above(p); a.live.Holds(p) {
		if e := a.live.Entry(p); e.Addr < r.End() {
			return e.Addr, e.Value, true
		}
	}
	return 0, b, false
}

// Free implements [alloc.Allocator]. Addresses that are not live never reach the plug-in.
func (a *Allocator) Free(at device.Addr) error {
	p, err := a.find(at)
	if err != nil {
		return err
	}
	b := a.live.Entry(p).Value
	a.live.Delete(p) // before the call, in which the plug-in may release the memory
	a.stats.Freed(b.size, b.size)
	_, err = a.call(call{callFree, [4]uint64{uint64(at), uint64(b.size), uint64(a.cfg.Device), uint64(b.stream)}})
	return err
}

// find returns the position of the live block that starts at an address.
func (a *Allocator) find(at device.Addr) (index.AddrPos, error) {
	switch p, found := a.live.Search(at); {
	case a.closed:
		return p, alloc.ErrClosed
	case a.fault != nil:
		return p, a.fault
	case !found:
		return p, alloc.ErrInvalidFree
	default:
		return p, nil
	}
}

// Trim implements [power.Trimmer] by the reset function, if there is one. The function returns no
// error; an injected fault of the device during the call is returned instead.
func (a *Allocator) Trim() (device.Size, error) {
	if a.closed {
		return 0, alloc.ErrClosed
	}
	before := a.memory.Regions + a.memory.Mapped
	if _, err := a.call(call{op: callReset}); err != nil {
		return 0, err
	}
	return before - min(before, a.memory.Regions+a.memory.Mapped), a.memory.Outcome.Fault
}

// RecordStream implements [power.StreamRecorder], if there is a function for it.
func (a *Allocator) RecordStream(at device.Addr, s device.Stream) error {
	if _, err := a.find(at); err != nil {
		return err
	}
	_, err := a.call(call{callRecord, [4]uint64{uint64(at), uint64(s)}})
	return err
}

// Close implements [alloc.Strategy]. The process of the instance ends and all its memory goes back
// to the device, as for any process.
func (a *Allocator) Close() error {
	a.closed = true
	a.instance.end()
	a.live.Clear()
	a.stats.Emptied()
	return a.memory.GiveBack()
}

// onRelease records a fault if a live block lies in memory that the plug-in releases.
func (a *Allocator) onRelease(r device.Region, doing string) {
	if at, b, ok := a.liveIn(r); ok {
		a.recordFault(brokenContained, fmt.Sprintf("it %s %v at %v, in which live block %v of %d bytes lies",
			doing, r.Size, r.Addr, at, uint64(b.size)))
	}
}

// foreign records a fault for a CUDA runtime that the stand-ins cannot serve. Later faults of the
// plug-in follow from it and are not recorded.
func (a *Allocator) foreign() {
	a.recordFault(brokenNoPanic, "it has a CUDA runtime of NVIDIA's in it, which starts on NVIDIA's driver alone: "+
		"link it with -cudart shared")
}
