package plugin

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/streampool"
)

// deviceOp is the kind of a device call that a plug-in makes through a stand-in library. The values
// are those in native/wire.h.
type deviceOp uint64

const (
	deviceReserve       deviceOp = iota + 1 // size -> address
	deviceRelease                           // address
	deviceInfo                              // -> free bytes, all bytes
	deviceNewEvent                          // -> event
	deviceDestroyEvent                      // event
	deviceRecord                            // event, stream
	deviceDone                              // event -> 1 if done
	deviceWait                              // stream, event
	deviceSyncEvent                         // event
	deviceSyncStream                        // stream
	deviceSync                              // of all streams
	deviceStreamDone                        // stream -> 1 if idle
	deviceGranularity                       // -> bytes
	deviceReserveRange                      // size, alignment, address -> address
	deviceReleaseRange                      // address
	deviceCreate                            // size -> handle
	deviceReleaseHandle                     // handle
	deviceMap                               // address, size, handle, offset
	deviceSetAccess                         // address, size, access
	deviceUnmap                             // address, size
	deviceNewPool                           // -> pool
	deviceDestroyPool                       // pool
	deviceAllocAsync                        // pool, size, stream -> address
	deviceFreeAsync                         // address, stream
	deviceTrimPool                          // pool, bytes to keep
	devicePoolGet                           // pool, attribute -> value
	devicePoolSet                           // pool, attribute, value
	deviceLookup                            // address -> region around it
	deviceExportTable                       // requested by NVIDIA's own CUDA runtime only
)

// deviceAnswer is the status of the answer, as in native/wire.h.
type deviceAnswer uint64

const (
	answerDone        deviceAnswer = iota // success
	answerOutOfMemory                     // out of memory
	answerInvalid                         // invalid argument
	answerUnsupported                     // unsupported by the device
	_                                     // sent by the host only: the program has ended
	answerFailed                          // any other error
)

// answerOf returns the status for an error of the device. An injected fault is answered like a
// driver's refusal.
func answerOf(op deviceOp, err error) deviceAnswer {
	switch {
	case err == nil:
		return answerDone
	case errors.Is(err, device.ErrOutOfMemory):
		return answerOutOfMemory
	case errors.Is(err, device.ErrUnsupported):
		return answerUnsupported
	case errors.Is(err, device.ErrInvalid):
		return answerInvalid
	}
	switch op {
	case deviceReserve, deviceReserveRange, deviceCreate, deviceMap, deviceNewEvent, deviceNewPool, deviceAllocAsync:
		return answerOutOfMemory
	}
	return answerFailed
}

// roomy in bytes is the free memory that is reported for an unbounded device. Plug-ins that take a
// share of the memory need a number.
const roomy = device.TiB

// cudaAlign in bytes is the least alignment of CUDA's memory. A simulated device may be configured
// to align less.
const cudaAlign = 512

// serve answers a device call.
func (a *Allocator) serve(op deviceOp, arg [4]uint64) ([2]uint64, deviceAnswer) {
	value, err := a.answer(op, arg)
	if errors.Is(err, device.ErrInjected) {
		a.memory.failure = err
	}
	return value, answerOf(op, err)
}

// answer makes a device call.
func (a *Allocator) answer(op deviceOp, arg [4]uint64) (value [2]uint64, err error) {
	m := a.memory
	switch op {
	case deviceReserve:
		var r device.Region
		r, err = m.Reserve(device.Size(arg[0]), cudaAlign)
		value[0] = uint64(r.Addr)
	case deviceRelease:
		err = a.release(device.Addr(arg[0]))
	case deviceInfo:
		return m.memoryInfo()
	case deviceLookup:
		r, _, ok := m.around(device.Addr(arg[0]))
		if !ok {
			err = device.ErrInvalid
		}
		value = [2]uint64{uint64(r.Addr), uint64(r.Size)}
	case deviceExportTable:
		// The allocator is not to blame for what the plug-in does after this answer.
		a.accuse(brokenNoPanic, "it has a CUDA runtime of NVIDIA's in it, which starts on NVIDIA's driver alone: link it "+
			"with -cudart shared")
		err = device.ErrUnsupported
	case deviceNewPool, deviceDestroyPool, deviceAllocAsync, deviceFreeAsync, deviceTrimPool, devicePoolGet, devicePoolSet:
		value[0], err = m.answerPools(op, arg)
	case deviceGranularity, deviceReserveRange, deviceReleaseRange, deviceCreate, deviceReleaseHandle, deviceMap,
		deviceSetAccess,
		deviceUnmap:
		value[0], err = a.answerVirtual(op, arg)
	default:
		value[0], err = m.answerStreams(op, arg)
	}
	return value, err
}

// release releases a region or a pool block: CUDA has one call for both.
func (a *Allocator) release(at device.Addr) error {
	if p, h := a.memory.inPool(at); p != nil {
		p.Free(h, 0)
		return nil
	}
	if r, isRange, ok := a.memory.around(at); ok && !isRange && r.Addr == at {
		a.vacated(r, "gave back")
	}
	return a.memory.Release(at)
}

// vacated accuses the plug-in if a live block lies in memory that it releases.
func (a *Allocator) vacated(r device.Region, doing string) {
	if at, b, ok := a.liveIn(r); ok {
		a.accuse(brokenContained, fmt.Sprintf("it %s %v at %v, in which live block %v of %d bytes lies",
			doing, r.Size, r.Addr, at, uint64(b.size)))
	}
}

// memoryInfo returns the free and total memory.
func (m *memory) memoryInfo() (value [2]uint64, err error) {
	if m.info == nil {
		return value, device.ErrUnsupported
	}
	free, total, err := m.info.MemoryInfo()
	if total == 0 {
		total = roomy
		free = roomy - min(m.regions+m.behind, roomy)
	}
	return [2]uint64{uint64(free), uint64(total)}, err
}

// answerStreams answers calls about streams and events.
func (m *memory) answerStreams(op deviceOp, arg [4]uint64) (value uint64, err error) {
	if m.streams == nil {
		return 0, device.ErrUnsupported
	}
	defer func() {
		if err == nil {
			m.synchronised(op)
		}
	}()
	switch op {
	case deviceNewEvent:
		e, err := m.newEvent()
		return uint64(e), err
	case deviceDestroyEvent:
		return 0, m.destroyEvent(device.Event(arg[0]))
	case deviceRecord:
		return 0, m.streams.Record(device.Event(arg[0]), device.Stream(arg[1]))
	case deviceDone:
		return truth(m.streams.Done(device.Event(arg[0])))
	case deviceStreamDone:
		return truth(m.streamDone(device.Stream(arg[0])))
	case deviceWait:
		return 0, m.streams.Wait(device.Stream(arg[0]), device.Event(arg[1]))
	case deviceSyncEvent:
		return 0, m.streams.SyncEvent(device.Event(arg[0]))
	case deviceSyncStream:
		return 0, m.streams.SyncStream(device.Stream(arg[0]))
	case deviceSync:
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
func (m *memory) streamDone(s device.Stream) (done bool, err error) {
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
func (a *Allocator) answerVirtual(op deviceOp, arg [4]uint64) (value uint64, err error) {
	m := a.memory
	if m.vm == nil {
		return 0, device.ErrUnsupported
	}
	at, size := device.Addr(arg[0]), device.Size(arg[1])
	switch op {
	case deviceGranularity:
		return uint64(m.vm.Granularity()), nil
	case deviceReserveRange:
		r, err := m.reserveRange(device.Size(arg[0]), size, device.Addr(arg[2]))
		return uint64(r.Addr), err
	case deviceReleaseRange:
		return 0, m.releaseRange(at)
	case deviceCreate:
		h, err := m.createHandle(device.Size(arg[0]))
		return uint64(h), err
	case deviceReleaseHandle:
		return 0, m.releaseHandle(device.Handle(arg[0]))
	case deviceMap:
		return 0, m.mapAt(at, size, device.Handle(arg[2]), device.Size(arg[3]))
	case deviceSetAccess:
		return 0, m.setAccess(at, size, device.Access(min(arg[2], 255)))
	}
	if err = m.unmap(at, size); err == nil {
		a.vacated(device.Region{Addr: at, Size: size}, "unmapped")
	}
	return 0, err
}

// backing is the memory as a source of pools.
type backing struct {
	*memory
	device.Streams
}

// Has limits the capabilities to the ones that pools use.
func (b backing) Has(c device.Capability) bool { return c == device.CapStreams && b.Streams != nil }

func (b backing) NewEvent() (device.Event, error) { return b.newEvent() }

func (b backing) DestroyEvent(e device.Event) error { return b.destroyEvent(e) }

// newPool creates a pool with CUDA's default settings.
func (m *memory) newPool() *streampool.Pool {
	p := streampool.New(backing{m, m.streams}, streampool.Config{
		Region: streampool.DefaultRegion, FollowEvents: true, ReuseFinished: true, InsertWaits: true,
	})
	m.pools = append(m.pools, p)
	return p
}

// pool returns the pool with a number, or nil. Pool 0 always exists.
func (m *memory) pool(n uint64) *streampool.Pool {
	if len(m.pools) == 0 {
		m.newPool()
	}
	if n >= uint64(len(m.pools)) {
		return nil
	}
	return m.pools[n]
}

// inPool returns the pool and the handle of the block that starts at an address.
func (m *memory) inPool(at device.Addr) (*streampool.Pool, streampool.Handle) {
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
func (m *memory) synchronised(by deviceOp) {
	if by != deviceSyncEvent && by != deviceSyncStream && by != deviceSync {
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
func (m *memory) answerPools(op deviceOp, arg [4]uint64) (value uint64, err error) {
	if op == deviceFreeAsync {
		p, h := m.inPool(device.Addr(arg[0]))
		if p == nil {
			return 0, m.Release(device.Addr(arg[0]))
		}
		p.Free(h, device.Stream(arg[1]))
		return 0, nil
	}
	p := m.pool(arg[0])
	if op == deviceNewPool {
		m.newPool()
		return uint64(len(m.pools) - 1), nil
	}
	if p == nil {
		return 0, device.ErrPool
	}
	switch op {
	case deviceDestroyPool:
		if arg[0] == 0 || p.Stats().Live > 0 {
			return 0, device.ErrBusy
		}
		m.pools[arg[0]] = nil
		return 0, errors.Join(p.Synchronise(), p.Close())
	case deviceAllocAsync:
		size := device.Size(arg[1])
		if size > streampool.MaxRequest {
			return 0, device.ErrOutOfMemory
		}
		h, err := p.Alloc(streampool.Request{Size: size, Stream: device.Stream(arg[2])})
		if err != nil {
			return 0, device.ErrOutOfMemory
		}
		return uint64(p.Show(h).Addr), nil
	case deviceTrimPool:
		_, err = p.Finish()
		_, failed := p.Trim(device.Size(arg[1]), false)
		return 0, errors.Join(err, failed)
	case devicePoolGet:
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
