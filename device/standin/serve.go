package standin

import (
	"errors"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/streampool"
)

// Op is the kind of a device call that a program makes through a stand-in library. The values are
// those in native/ops.h.
type Op uint64

const (
	opReserve       Op = iota + 1 // size -> address
	opRelease                     // address
	opInfo                        // -> free bytes, all bytes
	opNewEvent                    // -> event
	opDestroyEvent                // event
	opRecord                      // event, stream
	opDone                        // event -> 1 if done
	opWait                        // stream, event
	opSyncEvent                   // event
	opSyncStream                  // stream
	opSync                        // of all streams
	opStreamDone                  // stream -> 1 if idle
	opGranularity                 // -> bytes
	opReserveRange                // size, alignment, address -> address
	opReleaseRange                // address
	opCreate                      // size -> handle
	opReleaseHandle               // handle
	opMap                         // address, size, handle, offset
	opSetAccess                   // address, size, access
	opUnmap                       // address, size
	opNewPool                     // -> pool
	opDestroyPool                 // pool
	opAllocAsync                  // pool, size, stream -> address
	opFreeAsync                   // address, stream
	opTrimPool                    // pool, bytes to keep
	opPoolGet                     // pool, attribute -> value
	opPoolSet                     // pool, attribute, value
	opLookup                      // address -> region around it
	opExportTable                 // requested by NVIDIA's own CUDA runtime only
	opMark                        // kind and number of a mark; answered by the server
)

// Answer is the status of the answer, as in native/ops.h.
type Answer uint64

const (
	AnswerDone        Answer = iota // success
	answerOutOfMemory               // out of memory
	answerInvalid                   // invalid argument
	answerUnsupported               // unsupported by the device
	_                               // sent by the host only: the program has ended
	answerFailed                    // any other error
)

// answerOf returns the status for an error of the device. An injected fault is answered like a
// driver's refusal.
func answerOf(op Op, err error) Answer {
	switch {
	case err == nil:
		return AnswerDone
	case errors.Is(err, device.ErrOutOfMemory):
		return answerOutOfMemory
	case errors.Is(err, device.ErrUnsupported):
		return answerUnsupported
	case errors.Is(err, device.ErrInvalid):
		return answerInvalid
	}
	switch op {
	case opReserve, opReserveRange, opCreate, opMap, opNewEvent, opNewPool, opAllocAsync:
		return answerOutOfMemory
	}
	return answerFailed
}

// roomy in bytes is the free memory that is reported for an unbounded device. Programs that
// take a share of the memory need a number.
const roomy = device.TiB

// cudaAlign in bytes is the least alignment of CUDA's memory. A simulated device may be configured
// to align less.
const cudaAlign = 512

// Serve answers a device call: the two words of its result and its status.
func (m *Memory) Serve(op Op, arg [4]uint64) ([2]uint64, Answer) {
	value, err := m.answer(op, arg)
	if errors.Is(err, device.ErrInjected) {
		m.Outcome.Fault = err
	}
	return value, answerOf(op, err)
}

// answer makes a device call.
func (m *Memory) answer(op Op, arg [4]uint64) (value [2]uint64, err error) {
	switch op {
	case opReserve:
		var r device.Region
		r, err = m.Reserve(device.Size(arg[0]), cudaAlign)
		value[0] = uint64(r.Addr)
	case opRelease:
		err = m.release(device.Addr(arg[0]))
	case opInfo:
		return m.memoryInfo()
	case opLookup:
		r, _, ok := m.Around(device.Addr(arg[0]))
		if !ok {
			err = device.ErrInvalid
		}
		value = [2]uint64{uint64(r.Addr), uint64(r.Size)}
	case opExportTable:
		if m.Foreign != nil {
			m.Foreign()
		}
		err = device.ErrUnsupported
	case opNewPool, opDestroyPool, opAllocAsync, opFreeAsync, opTrimPool, opPoolGet, opPoolSet:
		value[0], err = m.answerPools(op, arg)
	case opGranularity, opReserveRange, opReleaseRange, opCreate, opReleaseHandle, opMap,
		opSetAccess,
		opUnmap:
		value[0], err = m.answerVirtual(op, arg)
	default:
		value[0], err = m.answerStreams(op, arg)
	}
	return value, err
}

// release releases a region or a pool block: CUDA has one call for both.
func (m *Memory) release(at device.Addr) error {
	if p, h := m.inPool(at); p != nil {
		p.Free(h, 0)
		return nil
	}
	if r, isRange, ok := m.Around(at); ok && !isRange && r.Addr == at {
		m.released(r, "gave back")
	}
	return m.Release(at)
}

func (m *Memory) released(r device.Region, doing string) {
	if m.Released != nil {
		m.Released(r, doing)
	}
}

// memoryInfo returns the free and total memory.
func (m *Memory) memoryInfo() (value [2]uint64, err error) {
	if m.info == nil {
		return value, device.ErrUnsupported
	}
	free, total, err := m.info.MemoryInfo()
	if total == 0 {
		total = roomy
		free = roomy - min(m.Regions+m.Behind, roomy)
	}
	return [2]uint64{uint64(free), uint64(total)}, err
}

// answerStreams answers calls about streams and events.
func (m *Memory) answerStreams(op Op, arg [4]uint64) (value uint64, err error) {
	if m.streams == nil {
		return 0, device.ErrUnsupported
	}
	defer func() {
		if err == nil {
			m.synchronised(op)
		}
	}()
	switch op {
	case opNewEvent:
		e, err := m.newEvent()
		return uint64(e), err
	case opDestroyEvent:
		return 0, m.destroyEvent(device.Event(arg[0]))
	case opRecord:
		return 0, m.streams.Record(device.Event(arg[0]), device.Stream(arg[1]))
	case opDone:
		return truth(m.streams.Done(device.Event(arg[0])))
	case opStreamDone:
		return truth(m.streamDone(device.Stream(arg[0])))
	case opWait:
		return 0, m.streams.Wait(device.Stream(arg[0]), device.Event(arg[1]))
	case opSyncEvent:
		return 0, m.streams.SyncEvent(device.Event(arg[0]))
	case opSyncStream:
		return 0, m.streams.SyncStream(device.Stream(arg[0]))
	case opSync:
		return 0, m.streams.SyncDevice()
	}
	return 0, device.ErrUnsupported
}

// truth returns 1 for true.
func truth(b bool, err error) (uint64, error) {
	if b {
		return 1, err
	}
	return 0, err
}

// streamDone reports whether the work queued on a stream has finished, by a temporary event.
func (m *Memory) streamDone(s device.Stream) (done bool, err error) {
	e, err := m.newEvent()
	if err != nil {
		return false, err
	}
	if err = m.streams.Record(e, s); err == nil {
		done, err = m.streams.Done(e)
	}
	return done, errors.Join(err, m.destroyEvent(e))
}

// answerVirtual answers calls about virtual memory.
func (m *Memory) answerVirtual(op Op, arg [4]uint64) (value uint64, err error) {
	if m.vm == nil {
		return 0, device.ErrUnsupported
	}
	at, size := device.Addr(arg[0]), device.Size(arg[1])
	switch op {
	case opGranularity:
		return uint64(m.vm.Granularity()), nil
	case opReserveRange:
		r, err := m.reserveRange(device.Size(arg[0]), size, device.Addr(arg[2]))
		return uint64(r.Addr), err
	case opReleaseRange:
		return 0, m.releaseRange(at)
	case opCreate:
		h, err := m.createHandle(device.Size(arg[0]))
		return uint64(h), err
	case opReleaseHandle:
		return 0, m.releaseHandle(device.Handle(arg[0]))
	case opMap:
		return 0, m.mapAt(at, size, device.Handle(arg[2]), device.Size(arg[3]))
	case opSetAccess:
		return 0, m.setAccess(at, size, device.Access(min(arg[2], 255)))
	}
	if err = m.unmap(at, size); err == nil {
		m.released(device.Region{Addr: at, Size: size}, "unmapped")
	}
	return 0, err
}

// backing is the memory as a source of pools.
type backing struct {
	*Memory
	device.Streams
}

// Has limits the capabilities to the ones that pools use.
func (b backing) Has(c device.Capability) bool { return c == device.CapStreams && b.Streams != nil }

func (b backing) NewEvent() (device.Event, error) { return b.newEvent() }

func (b backing) DestroyEvent(e device.Event) error { return b.destroyEvent(e) }

// newPool creates a pool with CUDA's default settings.
func (m *Memory) newPool() *streampool.Pool {
	p := streampool.New(backing{m, m.streams}, streampool.Config{
		Region: streampool.DefaultRegion, FollowEvents: true, ReuseFinished: true, InsertWaits: true,
	})
	m.pools = append(m.pools, p)
	return p
}

// pool returns the pool with a number, or nil. Pool 0 always exists.
func (m *Memory) pool(n uint64) *streampool.Pool {
	if len(m.pools) == 0 {
		m.newPool()
	}
	if n >= uint64(len(m.pools)) {
		return nil
	}
	return m.pools[n]
}

// inPool returns the pool and the handle of the block that starts at an address.
func (m *Memory) inPool(at device.Addr) (*streampool.Pool, streampool.Handle) {
	for _, p := range m.pools {
		if p != nil {
			if h := p.Find(at); h != streampool.None {
				return p, h
			}
		}
	}
	return nil, streampool.None
}

// synchronised lets pools release memory above their thresholds, as CUDA's pools do when the host
// synchronizes.
func (m *Memory) synchronised(by Op) {
	if by != opSyncEvent && by != opSyncStream && by != opSync {
		return
	}
	for _, p := range m.pools {
		if p != nil {
			_, _ = p.Poll() // regions that the device refuses stay
		}
	}
}

// answerPools answers calls about stream-ordered pools. The pools are of package streampool over
// regions of the device, so Walk shows their memory like any other.
func (m *Memory) answerPools(op Op, arg [4]uint64) (value uint64, err error) {
	if op == opFreeAsync {
		p, h := m.inPool(device.Addr(arg[0]))
		if p == nil {
			return 0, m.Release(device.Addr(arg[0]))
		}
		p.Free(h, device.Stream(arg[1]))
		return 0, nil
	}
	p := m.pool(arg[0])
	if op == opNewPool {
		m.newPool()
		return uint64(len(m.pools) - 1), nil
	}
	if p == nil {
		return 0, device.ErrPool
	}
	switch op {
	case opDestroyPool:
		if arg[0] == 0 || p.Stats().Live > 0 {
			return 0, device.ErrBusy
		}
		m.pools[arg[0]] = nil
		return 0, errors.Join(p.Synchronize(), p.Close())
	case opAllocAsync:
		size := device.Size(arg[1])
		if size > streampool.MaxRequest {
			return 0, device.ErrOutOfMemory
		}
		h, err := p.Alloc(streampool.Request{Size: size, Stream: device.Stream(arg[2])})
		if err != nil {
			return 0, device.ErrOutOfMemory
		}
		return uint64(p.Show(h).Addr), nil
	case opTrimPool:
		_, err = p.Finish()
		_, failed := p.Trim(device.Size(arg[1]), false)
		return 0, errors.Join(err, failed)
	case opPoolGet:
		v, err := p.Attribute(poolAttribute(arg[1]))
		return uint64(v), err
	}
	return 0, p.SetAttribute(poolAttribute(arg[1]), device.Size(arg[2]))
}

// poolAttribute maps CUDA's number of an attribute.
func poolAttribute(n uint64) device.PoolAttribute {
	all := [...]device.PoolAttribute{
		1: device.FollowEvents, 2: device.ReuseFinished, 3: device.InsertWaits, 4: device.ReleaseThreshold,
		5: device.ReservedNow, 6: device.ReservedHigh, 7: device.UsedNow, 8: device.UsedHigh,
	}
	if n == 0 || n >= uint64(len(all)) {
		return device.NumPoolAttributes
	}
	return all[n]
}
