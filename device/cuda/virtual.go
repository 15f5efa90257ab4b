package cuda

import (
	"unsafe"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/mapped"
	"github.com/vramyard/vramyard/kit/index"
)

// location is a CUmemLocation.
type location struct {
	kind int32 // 1 is a device
	id   int32
}

// allocationProp is a CUmemAllocationProp: pinned memory of one GPU, not shared with other
// processes.
type allocationProp struct {
	kind         int32 // 1 is pinned
	handleTypes  int32
	location     location
	win32        uintptr
	compression  uint8
	rdma         uint8
	usage        uint16
	reservedByte [4]byte
}

// accessDesc is a CUmemAccessDesc.
type accessDesc struct {
	location location
	flags    int32
}

// The driver reads these structures: their sizes must equal those in its header.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(allocationProp{})-32]
	_ = [1]struct{}{}[unsafe.Sizeof(accessDesc{})-12]
)

// accessFlags are CUmemAccess_flags by [device.Access].
var accessFlags = [...]int32{device.AccessNone: 0, device.AccessRead: 1, device.AccessReadWrite: 3}

// physical is memory that has a handle or a mapping.
type physical struct {
	handle uintptr // CUmemGenericAllocationHandle
	size   device.Size
	maps   int
	named  bool // not released
}

// probeVirtual determines the minimum granularity.
func (d *Device) probeVirtual() error {
	const minimum = 0 // CU_MEM_ALLOC_GRANULARITY_MINIMUM
	err := d.call(fnMemGetAllocationGranularity, d.result(), uintptr(unsafe.Pointer(&d.properties)), minimum)
	if err == nil {
		d.granularity = device.Size(d.out.word)
	}
	return err
}

func (d *Device) Granularity() device.Size { return d.granularity }

// whole reports whether n is a multiple of the granularity.
func (d *Device) whole(n device.Size) bool { return mapped.Whole(n, d.granularity) }

// ReserveRange implements [device.VirtualMemory] by cuMemAddressReserve. The driver takes an
// address as a hint: a range at a different address is released, and the call fails with out of
// memory.
func (d *Device) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := d.reserveRange(size, align, at)
	return r, d.count(device.CallReserveRange, err)
}

func (d *Device) reserveRange(size, align device.Size, at device.Addr) (r device.Region, err error) {
	switch {
	case size == 0, align != 0 && (!device.IsPowerOfTwo(align) || !at.IsAligned(align)):
		return r, device.ErrInvalid
	case !d.whole(size | device.Size(at)):
		return r, device.ErrGranularity
	case size > mostBytes, align > mostBytes:
		return r, device.ErrOutOfMemory
	}
	if align <= d.granularity {
		align = 0 // every range has this alignment
	}
	if err := d.enter(); err != nil {
		return r, err
	}
	defer d.leave()
	err = d.call(fnMemAddressReserve, d.result(), uintptr(size), uintptr(align), uintptr(at), 0)
	got := device.Addr(d.out.word)
	if err == nil && at != 0 && got != at {
		err = d.call(fnMemAddressFree, uintptr(got), uintptr(size))
		if err == nil {
			err = device.ErrOutOfMemory
		}
	} else if err != nil && at != 0 && isInvalidValue(err) {
		err = device.ErrOutOfMemory // the arguments were valid, so the address is occupied
	}
	d.addTime(device.CallReserveRange)
	if err != nil {
		return r, err
	}
	p, _ := d.ranges.Search(got)
	d.ranges.Insert(p, index.AddrEntry[device.Size]{Addr: got, Value: size})
	d.usage.Ranges++
	d.usage.Space += size
	return device.Region{Addr: got, Size: size}, nil
}

// ReleaseRange implements [device.VirtualMemory] by cuMemAddressFree.
func (d *Device) ReleaseRange(a device.Addr) error {
	return d.count(device.CallReleaseRange, d.releaseRange(a))
}

func (d *Device) releaseRange(a device.Addr) error {
	p, found := d.ranges.Search(a)
	if !found {
		return device.ErrInvalid
	}
	size := d.ranges.Entry(p).Value
	if m, _ := d.mappings.Search(a); d.mappings.Below(m, a.Add(size)) {
		return device.ErrMapped
	}
	if err := d.callOnce(device.CallReleaseRange, fnMemAddressFree, uintptr(a), uintptr(size)); err != nil {
		return err
	}
	d.ranges.Delete(p)
	d.usage.Ranges--
	d.usage.Space -= size
	return nil
}

// CreateHandle implements [device.VirtualMemory] by cuMemCreate.
func (d *Device) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := d.createHandle(size)
	return h, d.count(device.CallCreateHandle, err)
}

func (d *Device) createHandle(size device.Size) (device.Handle, error) {
	switch {
	case size == 0:
		return 0, device.ErrInvalid
	case !d.whole(size):
		return 0, device.ErrGranularity
	case d.exceedsLimit(size):
		return 0, device.ErrOutOfMemory
	}
	err := d.callOnce(device.CallCreateHandle, fnMemCreate, d.result(), uintptr(size),
		uintptr(unsafe.Pointer(&d.properties)), 0)
	if err != nil {
		return 0, err
	}
	handle := uintptr(d.out.word)
	number, m, ok := d.handles.Add()
	if !ok {
		_ = d.call(fnMemRelease, handle) // created above
		return 0, device.ErrOutOfMemory
	}
	*m = physical{handle: handle, size: size, named: true}
	d.usage.Handles++
	d.charge(size)
	return device.Handle(number), nil
}

// memory returns the memory of a handle.
func (d *Device) memory(h device.Handle) (slot int32, m *physical, ok bool) {
	if slot, ok = d.handles.Find(uint64(h)); !ok {
		return 0, nil, false
	}
	m = d.handles.At(slot)
	return slot, m, m.named
}

// ReleaseHandle implements [device.VirtualMemory] by cuMemRelease.
func (d *Device) ReleaseHandle(h device.Handle) error {
	return d.count(device.CallReleaseHandle, d.releaseHandle(h))
}

func (d *Device) releaseHandle(h device.Handle) error {
	slot, m, ok := d.memory(h)
	if !ok {
		return device.ErrHandle
	}
	if err := d.callOnce(device.CallReleaseHandle, fnMemRelease, m.handle); err != nil {
		return err
	}
	m.named = false
	d.usage.Handles--
	d.dropUnused(slot)
	return nil
}

// dropUnused removes memory without a handle and mappings from the account: the driver has freed
// it.
func (d *Device) dropUnused(slot int32) {
	if m := d.handles.At(slot); !m.named && m.maps == 0 {
		d.uncharge(m.size)
		d.handles.Remove(slot)
	}
}

// Map implements [device.VirtualMemory] by cuMemMap. The offset must be zero.
func (d *Device) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	return d.count(device.CallMap, d.mapAt(a, size, h, offset))
}

func (d *Device) mapAt(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	if size == 0 {
		return device.ErrInvalid
	}
	if !d.whole(device.Size(a) | size | offset) {
		return device.ErrGranularity
	}
	slot, m, ok := d.memory(h)
	switch {
	case !ok:
		return device.ErrHandle
	case size > m.size, offset > m.size-size, !d.inOneRange(a, size):
		return device.ErrInvalid
	}
	p, err := d.mappings.Room(a, size)
	if err != nil {
		return err
	}
	if offset != 0 {
		return device.ErrUnsupported
	}
	if err := d.callOnce(device.CallMap, fnMemMap, uintptr(a), uintptr(size), 0, m.handle, 0); err != nil {
		return err
	}
	d.mappings.Insert(p, index.AddrEntry[mapped.Mapping]{Addr: a, Value: mapped.Mapping{Size: size, Slot: slot}})
	m.maps++
	d.usage.Mapped += size
	return nil
}

// inOneRange reports whether size bytes at a lie in one range.
func (d *Device) inOneRange(a device.Addr, size device.Size) bool {
	p, ok := d.ranges.Floor(a)
	if !ok {
		return false
	}
	e := d.ranges.Entry(p)
	return mapped.Within(device.Region{Addr: e.Addr, Size: e.Value}, a, size)
}

// SetAccess implements [device.VirtualMemory] by cuMemSetAccess, once for each range. If the driver
// fails for a range, the ranges before it already have the new access.
func (d *Device) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	return d.count(device.CallSetAccess, d.setAccess(a, size, access))
}

func (d *Device) setAccess(a device.Addr, size device.Size, access device.Access) error {
	p, err := d.mappings.Fill(a, size, d.granularity)
	if access > device.AccessReadWrite {
		err = device.ErrInvalid
	}
	if err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	defer d.addTime(device.CallSetAccess)
	d.access.flags = accessFlags[access]
	for size > 0 {
		n := min(size, d.restOfRange(a))
		if err := d.call(fnMemSetAccess, uintptr(a), uintptr(n), uintptr(unsafe.Pointer(&d.access)), 1); err != nil {
			return err
		}
		a, size = a.Add(n), size-n
		p = d.mappings.Allow(p, a, access)
	}
	return nil
}

// restOfRange returns the bytes from address a to the end of the range that contains it.
func (d *Device) restOfRange(a device.Addr) device.Size {
	p, _ := d.ranges.Floor(a)
	e := d.ranges.Entry(p)
	return e.Addr.Add(e.Value).Sub(a)
}

// Unmap implements [device.VirtualMemory] by cuMemUnmap, once for each mapping, as the driver
// requires. It does not wait for work.
func (d *Device) Unmap(a device.Addr, size device.Size) error {
	return d.count(device.CallUnmap, d.unmap(a, size))
}

func (d *Device) unmap(a device.Addr, size device.Size) error {
	p, err := d.mappings.Fill(a, size, d.granularity)
	if err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	defer d.addTime(device.CallUnmap)
	for end := a.Add(size); a < end; {
		e := d.mappings.Entry(p)
		if err := d.call(fnMemUnmap, uintptr(e.Addr), uintptr(e.Value.Size)); err != nil {
			return err
		}
		p = d.mappings.Delete(p)
		p = d.mappings.Above(p)
		d.handles.At(e.Value.Slot).maps--
		d.dropUnused(e.Value.Slot)
		d.usage.Mapped -= e.Value.Size
		a = a.Add(e.Value.Size)
	}
	return nil
}
