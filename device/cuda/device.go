package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/handle"
	"github.com/vramyard/vramyard/device/internal/mapped"
	"github.com/vramyard/vramyard/kit/index"
)

// sizeUnit is the unit in bytes to which sizes of regions and blocks are rounded up.
const sizeUnit device.Size = 512

// mostBytes exceeds the memory of any GPU. Sizes up to it cannot overflow here, or be negative for
// a driver.
const mostBytes device.Size = 1 << 56

// Device is a GPU. It is not safe for concurrent use, but may be used from any goroutine.
type Device struct {
	cfg     Config
	driver  *driver
	gpu     int32   // CUdevice
	context uintptr // the primary context
	closed  bool
	usage   device.Usage
	started time.Time  // start of the current call
	args    [5]uintptr // arguments of the current driver call
	out     out        // output parameters of driver calls

	regions index.AddrList[region]

	granularity device.Size    // 0 if virtual memory is not supported
	properties  allocationProp // for creating memory
	access      accessDesc     // for granting access
	ranges      index.AddrList[device.Size]
	mappings    mapped.List
	handles     handle.Table[physical]

	streams map[device.Stream]uintptr
	events  handle.Table[uintptr]

	hasPools    bool
	props       poolProps // for creating pools
	defaultPool pool
	pools       handle.Table[pool]
	blocks      index.AddrList[block]
}

// out holds the output parameters of driver calls, on the heap, where they do not move.
type out struct {
	word, second uint64
	context      uintptr // popped context
	mode         uint32  // CUstreamCaptureMode of the thread
}

// captureRelaxed is CU_STREAM_CAPTURE_MODE_RELAXED: the thread may make unsafe calls during a
// capture on another thread.
const captureRelaxed = 2

// region is a region held.
type region struct {
	size device.Size
	base device.Addr // start of the driver's allocation
}

var (
	_ device.Device        = (*Device)(nil)
	_ device.VirtualMemory = (*Device)(nil)
	_ device.Streams       = (*Device)(nil)
	_ device.Pools         = (*Device)(nil)
	_ device.MemoryInfo    = (*Device)(nil)
	_ device.Contents      = (*Device)(nil)
)

// opened counts devices.
var opened atomic.Uint32

// errClosed is the error of calls after Close.
var errClosed = fmt.Errorf("%w: the device is closed", device.ErrInvalid)

// Open returns a GPU on which nothing is held yet. The caller closes it.
//
// Errors: [ErrNoDriver]; an [Error] of the driver; an error that lists the existing GPUs.
func Open(c Config) (*Device, error) {
	v, err := load(c.Driver)
	if err != nil {
		return nil, err
	}
	gpu, err := v.gpu(c.Ordinal)
	if err != nil {
		return nil, err
	}
	d := &Device{cfg: c, driver: v, gpu: gpu, usage: device.Usage{Capacity: c.Limit}, streams: map[device.Stream]uintptr{}}
	// A distinct ordinal makes handles invalid on all other devices, even of the same GPU.
	ordinal := uint8(opened.Add(1))
	d.handles.Ordinal, d.events.Ordinal, d.pools.Ordinal = ordinal, ordinal, ordinal
	d.properties = allocationProp{kind: 1, location: location{kind: 1, id: gpu}}
	d.access.location = d.properties.location
	d.props = poolProps{kind: 1, location: d.properties.location}
	if err := v.call(fnPrimaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(gpu)); err != nil {
		return nil, err
	}
	if err := d.probe(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *driver) gpu(ordinal int) (gpu int32, err error) {
	n, err := d.count()
	if err != nil {
		return 0, err
	}
	if err := checkOrdinal(ordinal, n); err != nil {
		return 0, err
	}
	return gpu, d.call(fnDeviceGet, uintptr(unsafe.Pointer(&gpu)), uintptr(ordinal))
}

func (d *driver) count() (int, error) {
	var n int32
	err := d.call(fnDeviceGetCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// probe determines the capabilities of the GPU. A driver that does not know an attribute lacks the
// feature.
func (d *Device) probe() error {
	if yes, err := d.driver.attribute(d.gpu, attrVirtualMemory); d.driver.virtual && err == nil && yes != 0 {
		if err := d.probeVirtual(); err != nil {
			return err
		}
	}
	if yes, err := d.driver.attribute(d.gpu, attrMemoryPools); d.driver.pools && err == nil && yes != 0 {
		return d.probePools()
	}
	return nil
}

// Has implements [device.Has] for the GPU and its driver.
func (d *Device) Has(c device.Capability) bool {
	switch c {
	case device.CapVirtualMemory:
		return d.granularity != 0
	case device.CapPools:
		return d.hasPools
	}
	return device.Implements(d, c)
}

// Config returns the configuration.
func (d *Device) Config() Config { return d.cfg }

// Usage implements [device.Device]. Times are measured.
func (d *Device) Usage() device.Usage { return d.usage }

// Close frees everything held, and the context. Later calls fail. Closing again is a no-op.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	var all []error
	if err := d.push(); err == nil {
		all = append(all, d.freeAll())
		all = append(all, d.pop())
	} else {
		all = append(all, err)
	}
	all = append(all, d.call(fnPrimaryCtxRelease, uintptr(d.gpu)))
	return errors.Join(all...)
}

// freeAll frees everything that the caller has not freed.
func (d *Device) freeAll() error {
	all := []error{d.call(fnCtxSynchronize)}
	for e := range d.blocks.All {
		all = append(all, d.call(fnMemFreeAsync, uintptr(e.Addr), 0))
	}
	for p := range d.pools.All {
		all = append(all, d.call(fnMemPoolDestroy, p.handle))
	}
	for e := range d.events.All {
		all = append(all, d.call(fnEventDestroy, *e))
	}
	for e := range d.mappings.All {
		all = append(all, d.call(fnMemUnmap, uintptr(e.Addr), uintptr(e.Value.Size)))
	}
	for h := range d.handles.All {
		if h.named {
			all = append(all, d.call(fnMemRelease, h.handle))
		}
	}
	for e := range d.ranges.All {
		all = append(all, d.call(fnMemAddressFree, uintptr(e.Addr), uintptr(e.Value)))
	}
	for e := range d.regions.All {
		all = append(all, d.call(fnMemFree, uintptr(e.Value.base)))
	}
	if !d.cfg.ForeignStreams {
		for _, s := range d.streams {
			all = append(all, d.call(fnStreamDestroy, s))
		}
	}
	return errors.Join(all...)
}

// call calls a function of the driver without allocating. Memory to which arguments point must be
// on the heap and reachable.
func (d *Device) call(e entry, args ...uintptr) error {
	n := copy(d.args[:], args)
	return d.driver.call(e, d.args[:n]...)
}

// result is the address of the word for the driver's result.
func (d *Device) result() uintptr { return uintptr(unsafe.Pointer(&d.out.word)) }

// push locks the goroutine to its thread, makes the context current, and permits calls that a
// capture on another thread forbids.
func (d *Device) push() error {
	runtime.LockOSThread()
	err := d.call(fnCtxPush, d.context)
	if err == nil {
		d.out.mode = captureRelaxed
		if err = d.exchangeMode(); err != nil {
			_ = d.call(fnCtxPop, uintptr(unsafe.Pointer(&d.out.context))) // balances the push above
		}
	}
	if err != nil {
		runtime.UnlockOSThread()
	}
	return err
}

// pop reverts push.
func (d *Device) pop() error {
	err := errors.Join(d.exchangeMode(), d.call(fnCtxPop, uintptr(unsafe.Pointer(&d.out.context))))
	runtime.UnlockOSThread()
	return err
}

// exchangeMode exchanges the thread's capture mode with d.out.mode.
func (d *Device) exchangeMode() error {
	if !d.driver.captures {
		return nil // not in older drivers
	}
	return d.call(fnThreadExchangeStreamCaptureMode, uintptr(unsafe.Pointer(&d.out.mode)))
}

// enter begins one or several timed driver calls. After success the caller must call leave.
func (d *Device) enter() error {
	if d.closed {
		return errClosed
	}
	if err := d.push(); err != nil {
		return err
	}
	d.started = time.Now()
	return nil
}

// addTime adds the time since enter to a kind of call. The time from here to leave does not count.
func (d *Device) addTime(c device.Call) {
	ns := uint64(time.Since(d.started))
	d.usage.Time += ns
	d.usage.Times[c] += ns
}

// leave ends the calls begun by enter. A failure to pop the context is ignored: the next call will
// report it.
func (d *Device) leave() { _ = d.pop() }

// callOnce makes a call of kind c that is a single driver call, and measures it.
func (d *Device) callOnce(c device.Call, e entry, args ...uintptr) error {
	if err := d.enter(); err != nil {
		return err
	}
	err := d.call(e, args...)
	d.addTime(c)
	d.leave()
	return err
}

// count counts a call and returns err, the result of the call.
func (d *Device) count(c device.Call, err error) error {
	if err != nil {
		d.usage.Calls[c].Failed++
	} else {
		d.usage.Calls[c].Done++
	}
	return err
}

// exceedsLimit reports whether n more bytes exceed the limit.
func (d *Device) exceedsLimit(n device.Size) bool { return n > mostBytes || n > d.usage.Free() }

func (d *Device) charge(n device.Size) {
	d.usage.Held += n
	d.usage.Charged = d.usage.Held
	d.usage.PeakHeld = max(d.usage.PeakHeld, d.usage.Held)
	d.usage.PeakCharged = d.usage.PeakHeld
}

func (d *Device) uncharge(n device.Size) {
	d.usage.Held -= n
	d.usage.Charged = d.usage.Held
}

// Reserve implements [device.Source] by cuMemAlloc. If the result lacks the alignment, Reserve
// makes a second allocation, larger by the alignment.
func (d *Device) Reserve(size, align device.Size) (device.Region, error) {
	r, err := d.reserve(size, align)
	return r, d.count(device.CallReserve, err)
}

func (d *Device) reserve(size, align device.Size) (device.Region, error) {
	if size == 0 || align != 0 && !device.IsPowerOfTwo(align) {
		return device.Region{}, device.ErrInvalid
	}
	if size > mostBytes || align > mostBytes {
		return device.Region{}, device.ErrOutOfMemory
	}
	size = device.AlignUp(size, sizeUnit)
	if d.exceedsLimit(size) {
		return device.Region{}, device.ErrOutOfMemory
	}
	if err := d.enter(); err != nil {
		return device.Region{}, err
	}
	defer d.leave()
	base, at, err := d.allocate(size, align)
	d.addTime(device.CallReserve)
	if err != nil {
		return device.Region{}, err
	}
	p, _ := d.regions.Search(at)
	d.regions.Insert(p, index.AddrEntry[region]{Addr: at, Value: region{size: size, base: base}})
	d.usage.Regions++
	d.charge(size)
	return device.Region{Addr: at, Size: size}, nil
}

// allocate returns an allocation of the driver and its first aligned address.
func (d *Device) allocate(size, align device.Size) (base, at device.Addr, err error) {
	if err = d.call(fnMemAlloc, d.result(), uintptr(size)); err != nil {
		return 0, 0, err
	}
	if base = device.Addr(d.out.word); align == 0 || base.IsAligned(align) {
		return base, base, nil
	}
	if err = d.call(fnMemFree, uintptr(base)); err != nil {
		return 0, 0, err
	}
	if err = d.call(fnMemAlloc, d.result(), uintptr(size+align)); err != nil {
		return 0, 0, err
	}
	base = device.Addr(d.out.word)
	return base, device.AlignUp(base, align), nil
}

// Release implements [device.Source] by cuMemFree.
func (d *Device) Release(a device.Addr) error { return d.count(device.CallRelease, d.release(a)) }

func (d *Device) release(a device.Addr) error {
	p, found := d.regions.Search(a)
	if !found {
		return device.ErrInvalid
	}
	r := d.regions.Entry(p).Value
	if err := d.callOnce(device.CallRelease, fnMemFree, uintptr(r.base)); err != nil {
		return err
	}
	d.regions.Delete(p)
	d.usage.Regions--
	d.uncharge(r.size)
	return nil
}

// MemoryInfo implements [device.MemoryInfo] by cuMemGetInfo, for the whole GPU including other
// programs. A limit bounds both results.
func (d *Device) MemoryInfo() (free, total device.Size, err error) {
	err = d.callOnce(device.CallMemoryInfo, fnMemGetInfo, d.result(), uintptr(unsafe.Pointer(&d.out.second)))
	if err == nil {
		free, total = device.Size(d.out.word), device.Size(d.out.second)
		if d.cfg.Limit != 0 {
			free, total = min(free, d.usage.Free()), min(total, d.cfg.Limit)
		}
	}
	return free, total, d.count(device.CallMemoryInfo, err)
}

// CallOverhead makes n calls of cuDriverGetVersion, which does nothing on the GPU, and returns
// their time: the overhead of a driver call, which is part of the time of every call.
func (d *Device) CallOverhead(n int) (time.Duration, error) {
	start := time.Now()
	for range n {
		if err := d.call(fnDriverGetVersion, d.result()); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
