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

// round in bytes is what sizes of regions and of blocks of pools are rounded up to.
const round device.Size = 512

// mostBytes is more than any GPU has: what is above cannot overflow here, nor be read as negative
// by a driver.
const mostBytes device.Size = 1 << 56

// Device is one GPU. It is not safe for concurrent use; any goroutine may use it.
type Device struct {
	cfg     Config
	driver  *driver
	gpu     int32   // CUdevice
	context uintptr // its primary one
	closed  bool
	usage   device.Usage
	started time.Time  // of the present call
	args    [5]uintptr // of the present call of the driver's
	out     out        // what the driver writes to

	regions index.AddrList[region]

	granularity device.Size    // 0 without virtual memory
	properties  allocationProp // of memory that is made
	access      accessDesc     // that is given
	ranges      index.AddrList[device.Size]
	mappings    mapped.List
	handles     handle.Table[physical]

	streams map[device.Stream]uintptr
	events  handle.Table[uintptr]

	hasPools    bool
	props       poolProps // of a pool that is made
	defaultPool pool
	pools       handle.Table[pool]
	blocks      index.AddrList[block]
}

// out is where the driver writes its answers, on the heap, which nothing moves.
type out struct {
	word, second uint64
	context      uintptr // that was popped
	mode         uint32  // CUstreamCaptureMode that the thread had
}

// captureRelaxed is CU_STREAM_CAPTURE_MODE_RELAXED: a thread may make calls that are unsafe while
// somebody captures.
const captureRelaxed = 2

// region is what is known of one.
type region struct {
	size device.Size
	base device.Addr // where the driver's allocation starts
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

// errClosed says that the device was closed.
var errClosed = fmt.Errorf("%w: the device is closed", device.ErrInvalid)

// Open returns a GPU on which nothing is held yet. The caller closes it.
//
// Errors: [ErrNoDriver]; an [Error] of the driver; an error that says which GPUs there are.
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
	// Numbers of each device are foreign to all others, also to those of another view of the same GPU.
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
	if err := there(ordinal, n); err != nil {
		return 0, err
	}
	return gpu, d.call(fnDeviceGet, uintptr(unsafe.Pointer(&gpu)), uintptr(ordinal))
}

func (d *driver) count() (int, error) {
	var n int32
	err := d.call(fnDeviceGetCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// probe finds out what the GPU can. A driver that does not know an attribute has not what that is
// about.
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

// Has tells [device.Has] what the GPU and its driver can.
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

// Close gives back all that is held, and the context. Calls after it fail. Closing again does
// nothing.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	var all []error
	if err := d.push(); err == nil {
		all = append(all, d.giveAllBack())
		all = append(all, d.pop())
	} else {
		all = append(all, err)
	}
	all = append(all, d.call(fnPrimaryCtxRelease, uintptr(d.gpu)))
	return errors.Join(all...)
}

// giveAllBack gives to the driver what was not given back by the caller.
func (d *Device) giveAllBack() error {
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

// call calls a function of the driver. Nothing is allocated for it, so what addresses among the
// arguments point to must be on the heap and held by somebody.
func (d *Device) call(e entry, args ...uintptr) error {
	n := copy(d.args[:], args)
	return d.driver.call(e, d.args[:n]...)
}

// answer is the address of the word that the driver writes to.
func (d *Device) answer() uintptr { return uintptr(unsafe.Pointer(&d.out.word)) }

// push locks the goroutine to its thread, makes the context the thread's, and lets the thread do
// what a capture elsewhere in the process forbids.
func (d *Device) push() error {
	runtime.LockOSThread()
	err := d.call(fnCtxPush, d.context)
	if err == nil {
		d.out.mode = captureRelaxed
		if err = d.exchangeMode(); err != nil {
			_ = d.call(fnCtxPop, uintptr(unsafe.Pointer(&d.out.context))) // it was just pushed
		}
	}
	if err != nil {
		runtime.UnlockOSThread()
	}
	return err
}

// pop undoes push.
func (d *Device) pop() error {
	err := errors.Join(d.exchangeMode(), d.call(fnCtxPop, uintptr(unsafe.Pointer(&d.out.context))))
	runtime.UnlockOSThread()
	return err
}

// exchangeMode swaps the thread's mode of capture with the one in d.out.
func (d *Device) exchangeMode() error {
	if !d.driver.captures {
		return nil // an older driver
	}
	return d.call(fnThreadExchangeStreamCaptureMode, uintptr(unsafe.Pointer(&d.out.mode)))
}

// enter begins a call of the driver's, or several, whose time counts. Who got no error leaves.
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

// tick adds the time since enter to a kind of call. What follows up to leave does not count.
func (d *Device) tick(c device.Call) {
	ns := uint64(time.Since(d.started))
	d.usage.Time += ns
	d.usage.Times[c] += ns
}

// leave ends what enter began. The context was there, so that nothing is left to be said if it
// cannot be popped: the next call will say it.
func (d *Device) leave() { _ = d.pop() }

// one makes a call of the kind c that is one call of the driver.
func (d *Device) one(c device.Call, e entry, args ...uintptr) error {
	if err := d.enter(); err != nil {
		return err
	}
	err := d.call(e, args...)
	d.tick(c)
	d.leave()
	return err
}

// book counts a call and returns err, with which it fails.
func (d *Device) book(c device.Call, err error) error {
	if err != nil {
		d.usage.Calls[c].Failed++
	} else {
		d.usage.Calls[c].Done++
	}
	return err
}

// over reports whether so many bytes more are above the limit.
func (d *Device) over(n device.Size) bool { return n > mostBytes || n > d.usage.Free() }

func (d *Device) hold(n device.Size) {
	d.usage.Held += n
	d.usage.Charged = d.usage.Held
	d.usage.PeakHeld = max(d.usage.PeakHeld, d.usage.Held)
	d.usage.PeakCharged = d.usage.PeakHeld
}

func (d *Device) letGo(n device.Size) {
	d.usage.Held -= n
	d.usage.Charged = d.usage.Held
}

// Reserve implements [device.Source] by cuMemAlloc. An alignment that the driver does not give by
// itself costs a second allocation, larger by the alignment.
func (d *Device) Reserve(size, align device.Size) (device.Region, error) {
	r, err := d.reserve(size, align)
	return r, d.book(device.CallReserve, err)
}

func (d *Device) reserve(size, align device.Size) (device.Region, error) {
	if size == 0 || align != 0 && !device.IsPowerOfTwo(align) {
		return device.Region{}, device.ErrInvalid
	}
	if size > mostBytes || align > mostBytes {
		return device.Region{}, device.ErrOutOfMemory
	}
	size = device.AlignUp(size, round)
	if d.over(size) {
		return device.Region{}, device.ErrOutOfMemory
	}
	if err := d.enter(); err != nil {
		return device.Region{}, err
	}
	defer d.leave()
	base, at, err := d.allocate(size, align)
	d.tick(device.CallReserve)
	if err != nil {
		return device.Region{}, err
	}
	p, _ := d.regions.Search(at)
	d.regions.Insert(p, index.AddrEntry[region]{Addr: at, Value: region{size: size, base: base}})
	d.usage.Regions++
	d.hold(size)
	return device.Region{Addr: at, Size: size}, nil
}

// allocate returns an allocation of the driver's and the first address in it with the alignment.
func (d *Device) allocate(size, align device.Size) (base, at device.Addr, err error) {
	if err = d.call(fnMemAlloc, d.answer(), uintptr(size)); err != nil {
		return 0, 0, err
	}
	if base = device.Addr(d.out.word); align == 0 || base.IsAligned(align) {
		return base, base, nil
	}
	if err = d.call(fnMemFree, uintptr(base)); err != nil {
		return 0, 0, err
	}
	if err = d.call(fnMemAlloc, d.answer(), uintptr(size+align)); err != nil {
		return 0, 0, err
	}
	base = device.Addr(d.out.word)
	return base, device.AlignUp(base, align), nil
}

// Release implements [device.Source] by cuMemFree.
func (d *Device) Release(a device.Addr) error { return d.book(device.CallRelease, d.release(a)) }

func (d *Device) release(a device.Addr) error {
	p, found := d.regions.Search(a)
	if !found {
		return device.ErrInvalid
	}
	r := d.regions.Entry(p).Value
	if err := d.one(device.CallRelease, fnMemFree, uintptr(r.base)); err != nil {
		return err
	}
	d.regions.Delete(p)
	d.usage.Regions--
	d.letGo(r.size)
	return nil
}

// MemoryInfo implements [device.MemoryInfo] by cuMemGetInfo: of the whole GPU, with what others
// hold. A limit bounds both figures.
func (d *Device) MemoryInfo() (free, total device.Size, err error) {
	err = d.one(device.CallMemoryInfo, fnMemGetInfo, d.answer(), uintptr(unsafe.Pointer(&d.out.second)))
	if err == nil {
		free, total = device.Size(d.out.word), device.Size(d.out.second)
		if d.cfg.Limit != 0 {
			free, total = min(free, d.usage.Free()), min(total, d.cfg.Limit)
		}
	}
	return free, total, d.book(device.CallMemoryInfo, err)
}

// Crossing makes n calls of cuDriverGetVersion, which does nothing on the GPU, and returns how long
// they took: what it costs to get into the driver and back, which is in the time of every call.
func (d *Device) Crossing(n int) (time.Duration, error) {
	start := time.Now()
	for range n {
		if err := d.call(fnDriverGetVersion, d.answer()); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
