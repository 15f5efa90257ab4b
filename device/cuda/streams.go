package cuda

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

const (
	streamNonBlocking  = 1 // CU_STREAM_NON_BLOCKING: no synchronization with the default stream
	eventDisableTiming = 2 // CU_EVENT_DISABLE_TIMING
)

// stream returns the CUstream of a number, and creates it on first use, whose time is not counted.
func (d *Device) stream(s device.Stream) (uintptr, error) {
	if s == 0 || d.cfg.ForeignStreams {
		return uintptr(s), nil
	}
	if made, ok := d.streams[s]; ok {
		return made, nil
	}
	if d.closed {
		return 0, errClosed
	}
	if err := d.push(); err != nil {
		return 0, err
	}
	defer d.leave()
	if err := d.call(fnStreamCreate, d.result(), streamNonBlocking); err != nil {
		return 0, err
	}
	made := uintptr(d.out.word)
	d.streams[s] = made
	return made, nil
}

func (d *Device) event(e device.Event) (uintptr, error) {
	if i, ok := d.events.Find(uint64(e)); ok {
		return *d.events.At(i), nil
	}
	return 0, device.ErrEvent
}

// eventAndStream returns the CUevent and the CUstream of a call.
func (d *Device) eventAndStream(e device.Event, s device.Stream) (event, stream uintptr, err error) {
	if event, err = d.event(e); err != nil {
		return 0, 0, err
	}
	stream, err = d.stream(s)
	return event, stream, err
}

// NewEvent implements [device.Streams] by cuEventCreate, without timing.
func (d *Device) NewEvent() (device.Event, error) {
	e, err := d.newEvent()
	return e, d.count(device.CallNewEvent, err)
}

func (d *Device) newEvent() (device.Event, error) {
	if err := d.callOnce(device.CallNewEvent, fnEventCreate, d.result(), eventDisableTiming); err != nil {
		return 0, err
	}
	made := uintptr(d.out.word)
	number, e, ok := d.events.Add()
	if !ok {
		_ = d.call(fnEventDestroy, made) // created above
		return 0, device.ErrOutOfMemory
	}
	*e = made
	d.usage.Events++
	return device.Event(number), nil
}

// DestroyEvent implements [device.Streams] by cuEventDestroy.
func (d *Device) DestroyEvent(e device.Event) error {
	return d.count(device.CallDestroyEvent, d.destroyEvent(e))
}

func (d *Device) destroyEvent(e device.Event) error {
	i, ok := d.events.Find(uint64(e))
	if !ok {
		return device.ErrEvent
	}
	if err := d.callOnce(device.CallDestroyEvent, fnEventDestroy, *d.events.At(i)); err != nil {
		return err
	}
	d.events.Remove(i)
	d.usage.Events--
	return nil
}

// Record implements [device.Streams] by cuEventRecord.
func (d *Device) Record(e device.Event, s device.Stream) error {
	return d.count(device.CallRecord, d.record(e, s))
}

func (d *Device) record(e device.Event, s device.Stream) error {
	event, stream, err := d.eventAndStream(e, s)
	if err != nil {
		return err
	}
	return d.callOnce(device.CallRecord, fnEventRecord, event, stream)
}

// Done implements [device.Streams] by cuEventQuery.
func (d *Device) Done(e device.Event) (bool, error) {
	event, err := d.event(e)
	if err == nil {
		err = d.callOnce(device.CallDone, fnEventQuery, event)
	}
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == CodeNotReady {
		return false, d.count(device.CallDone, nil)
	}
	return err == nil, d.count(device.CallDone, err)
}

// Wait implements [device.Streams] by cuStreamWaitEvent.
func (d *Device) Wait(s device.Stream, e device.Event) error {
	return d.count(device.CallWait, d.wait(s, e))
}

func (d *Device) wait(s device.Stream, e device.Event) error {
	event, stream, err := d.eventAndStream(e, s)
	if err != nil {
		return err
	}
	return d.callOnce(device.CallWait, fnStreamWaitEvent, stream, event, 0)
}

// SyncEvent implements [device.Streams] by cuEventSynchronize.
func (d *Device) SyncEvent(e device.Event) error {
	event, err := d.event(e)
	if err == nil {
		err = d.sync(device.CallSyncEvent, fnEventSynchronize, event)
	}
	return d.count(device.CallSyncEvent, err)
}

// SyncStream implements [device.Streams] by cuStreamSynchronize.
func (d *Device) SyncStream(s device.Stream) error {
	stream, err := d.stream(s)
	if err == nil {
		err = d.sync(device.CallSyncStream, fnStreamSynchronize, stream)
	}
	return d.count(device.CallSyncStream, err)
}

// SyncDevice implements [device.Streams] by cuCtxSynchronize.
func (d *Device) SyncDevice() error {
	return d.count(device.CallSyncDevice, d.sync(device.CallSyncDevice, fnCtxSynchronize))
}

// sync makes a call that waits, after which pools may have returned memory.
func (d *Device) sync(c device.Call, e entry, args ...uintptr) error {
	if err := d.callOnce(c, e, args...); err != nil {
		return err
	}
	return d.refreshPools()
}
