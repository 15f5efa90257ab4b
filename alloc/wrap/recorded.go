package wrap

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// OpKind is the call of an [Operation].
type OpKind uint8

// The calls that change a strategy.
const (
	OpAlloc       OpKind = iota // Alloc
	OpFree                      // Free
	OpTrim                      // Trim
	OpFrontier                  // SetFrontier
	OpClear                     // ClearStats
	OpUse                       // RecordStream
	OpPoll                      // Poll
	OpBeginPool                 // BeginPool, BeginMemPool
	OpEndPool                   // EndPool
	OpReleasePool               // ReleasePool
	OpConfigure                 // Configure
)

// Operation is a completed call of a recorded strategy. Fields that the kind does not use are zero.
type Operation struct {
	Kind    OpKind        // kind of the call
	Request alloc.Request // OpAlloc: the request
	Block   alloc.Block   // OpAlloc: the granted block
	Addr    device.Addr   // OpFree, OpUse: the argument
	Count   uint64        // OpFrontier: the argument
	Err     error         // the returned error

	Stream device.Stream // OpUse, OpBeginPool: the argument
	Pool   alloc.PoolID  // OpBeginPool, OpEndPool, OpReleasePool: the argument

	Options  power.PoolOptions // OpBeginPool: the argument of BeginMemPool
	Settings string            // OpConfigure: the argument
}

// recorded is a strategy that reports its calls.
type recorded struct {
	Forwarder
	sink func(Operation)
}

// Recorded returns s with every call that changes it reported to sink when it returns. Package
// harness/trace has a sink that writes a trace. Recorded fails if sink is nil.
//
// The sink runs inside the call. Within Locked it is called with the lock held, so the order of its
// calls is the order of the calls of s.
func Recorded(s alloc.Strategy, sink func(Operation)) (alloc.Strategy, error) {
	if sink == nil {
		return nil, errors.New("alloc: Recorded without a sink")
	}
	return &recorded{Forwarder: Forward(s, nil), sink: sink}, nil
}

// Has excludes moving: a trace identifies a block by the address of its grant.
func (r *recorded) Has(p power.Power) bool { return p != power.PowerMover && r.Forwarder.Has(p) }

func (r *recorded) Alloc(req alloc.Request) (alloc.Block, error) {
	b, err := r.inner.Alloc(req)
	r.sink(Operation{Kind: OpAlloc, Request: req, Block: b, Err: err})
	return b, err
}

func (r *recorded) Free(a device.Addr) error {
	err := r.inner.Free(a)
	r.sink(Operation{Kind: OpFree, Addr: a, Err: err})
	return err
}

func (r *recorded) FreeRef(b alloc.Block) error {
	err := r.freeRef(b)
	r.sink(Operation{Kind: OpFree, Addr: b.Addr, Err: err})
	return err
}

func (r *recorded) Trim() (device.Size, error) {
	n, err := power.Trim(r.inner)
	r.sink(Operation{Kind: OpTrim, Err: err})
	return n, err
}

func (r *recorded) SetFrontier(count uint64) {
	_ = power.SetFrontier(r.inner, count) // the caller has checked power.Has
	r.sink(Operation{Kind: OpFrontier, Count: count})
}

func (r *recorded) ClearStats() {
	_ = power.ClearStats(r.inner) // the caller has checked power.Has
	r.sink(Operation{Kind: OpClear})
}

func (r *recorded) RecordStream(a device.Addr, s device.Stream) error {
	err := power.RecordStream(r.inner, a, s)
	r.sink(Operation{Kind: OpUse, Addr: a, Stream: s, Err: err})
	return err
}

func (r *recorded) Poll() (device.Size, error) {
	n, err := power.Poll(r.inner)
	r.sink(Operation{Kind: OpPoll, Err: err})
	return n, err
}

func (r *recorded) BeginPool(id alloc.PoolID, s device.Stream) error {
	err := power.BeginPool(r.inner, id, s)
	r.sink(Operation{Kind: OpBeginPool, Pool: id, Stream: s, Err: err})
	return err
}

func (r *recorded) BeginMemPool(id alloc.PoolID, s device.Stream, o power.PoolOptions) error {
	err := power.BeginMemPool(r.inner, id, s, o)
	r.sink(Operation{Kind: OpBeginPool, Pool: id, Stream: s, Options: o, Err: err})
	return err
}

func (r *recorded) EndPool(id alloc.PoolID) error {
	err := power.EndPool(r.inner, id)
	r.sink(Operation{Kind: OpEndPool, Pool: id, Err: err})
	return err
}

func (r *recorded) ReleasePool(id alloc.PoolID) error {
	err := power.ReleasePool(r.inner, id)
	r.sink(Operation{Kind: OpReleasePool, Pool: id, Err: err})
	return err
}

func (r *recorded) Configure(settings string) error {
	err := power.Configure(r.inner, settings)
	r.sink(Operation{Kind: OpConfigure, Settings: settings, Err: err})
	return err
}
