package cuda

import (
	"unsafe"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// poolProps is a CUmemPoolProps: pinned memory of one GPU, not shared with other processes.
type poolProps struct {
	kind        int32 // 1 is pinned
	handleTypes int32
	location    location
	win32       uintptr
	maxSize     uint64 // from CUDA 12.2 on; zero before
	usage       uint16
	reserved    [54]byte
}

var _ = [1]struct{}{}[unsafe.Sizeof(poolProps{})-88]

// boundedPools is the first driver version with a maximum size of pools.
const boundedPools = 12020

// poolAttributes are CUmemPool_attribute by [device.PoolAttribute]. The three flags are 32-bit
// integers, the others 64 bits.
var poolAttributes = [device.NumPoolAttributes]uintptr{
	device.FollowEvents: 1, device.ReuseFinished: 2, device.InsertWaits: 3, device.ReleaseThreshold: 4,
	device.ReservedNow: 5, device.ReservedHigh: 6, device.UsedNow: 7, device.UsedHigh: 8,
}

func isFlag(a device.PoolAttribute) bool {
	return a == device.FollowEvents || a == device.ReuseFinished || a == device.InsertWaits
}

// pool is the state of a CUmemoryPool.
type pool struct {
	handle  uintptr
	blocks  int
	limit   device.Size // maximum size in bytes; 0 is unlimited
	counted device.Size // bytes of the pool that the account counts as held
	others  device.Size // bytes held by other users of the process when the device was opened
}

// block is a block of a pool that has not been freed.
type block struct {
	size device.Size
	pool device.Pool
}

// probePools finds the default pool.
func (d *Device) probePools() error {
	p := &d.defaultPool
	err := d.call(fnDeviceGetDefaultMemPool, d.result(), uintptr(d.gpu))
	if err == nil {
		p.handle = uintptr(d.out.word)
		p.others, err = d.statistic(p, device.ReservedNow)
	}
	d.hasPools = err == nil
	return err
}

// statistic returns an attribute of a pool.
func (d *Device) statistic(p *pool, a device.PoolAttribute) (device.Size, error) {
	d.out.word = 0 // a 32-bit result is the low half, as all supported platforms are little-endian
	err := d.call(fnMemPoolGetAttribute, p.handle, poolAttributes[a], d.result())
	return device.Size(d.out.word), err
}

func (d *Device) pool(p device.Pool) (*pool, error) {
	if p == 0 {
		return &d.defaultPool, nil
	}
	if i, ok := d.pools.Find(uint64(p)); ok {
		return d.pools.At(i), nil
	}
	return nil, device.ErrPool
}

// refresh updates the account with the current size of a pool.
func (d *Device) refresh(p *pool) error {
	now, err := d.statistic(p, device.ReservedNow)
	if err != nil {
		return err
	}
	now -= min(now, p.others)
	d.uncharge(p.counted)
	d.charge(now)
	p.counted = now
	return nil
}

// refreshPools updates the account for all pools.
func (d *Device) refreshPools() error {
	if !d.hasPools {
		return nil
	}
	err := d.refresh(&d.defaultPool)
	for p := range d.pools.All {
		if err == nil {
			err = d.refresh(p)
		}
	}
	return err
}

// NewPool implements [device.Pools] by cuMemPoolCreate. A maximum size needs a driver of CUDA 12.2.
func (d *Device) NewPool(limit device.Size) (device.Pool, error) {
	p, err := d.newPool(limit)
	return p, d.count(device.CallNewPool, err)
}

func (d *Device) newPool(limit device.Size) (device.Pool, error) {
	if limit != 0 && d.driver.version < boundedPools {
		return 0, device.ErrUnsupported
	}
	d.props.maxSize = uint64(limit)
	if err := d.callOnce(device.CallNewPool, fnMemPoolCreate, d.result(), uintptr(unsafe.Pointer(&d.props))); err != nil {
		return 0, err
	}
	made := pool{handle: uintptr(d.out.word), limit: limit}
	number, p, ok := d.pools.Add()
	if !ok {
		_ = d.call(fnMemPoolDestroy, made.handle) // created above
		return 0, device.ErrOutOfMemory
	}
	*p = made
	return device.Pool(number), nil
}

// DestroyPool implements [device.Pools] by cuMemPoolDestroy. It fails with [device.ErrBusy] if the
// pool has blocks, which the driver would keep alive.
func (d *Device) DestroyPool(p device.Pool) error {
	return d.count(device.CallDestroyPool, d.destroyPool(p))
}

func (d *Device) destroyPool(p device.Pool) error {
	if p == 0 {
		return device.ErrInvalid
	}
	gone, err := d.pool(p)
	if err != nil {
		return err
	}
	if gone.blocks > 0 {
		return device.ErrBusy
	}
	if err := d.callOnce(device.CallDestroyPool, fnMemPoolDestroy, gone.handle); err != nil {
		return err
	}
	d.uncharge(gone.counted)
	i, _ := d.pools.Find(uint64(p))
	d.pools.Remove(i)
	return nil
}

// AllocAsync implements [device.Pools] by cuMemAllocFromPoolAsync. Sizes are rounded up to 512 B.
func (d *Device) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	r, err := d.allocAsync(p, size, s)
	return r, d.count(device.CallAllocAsync, err)
}

func (d *Device) allocAsync(name device.Pool, size device.Size, s device.Stream) (r device.Region, err error) {
	p, err := d.pool(name)
	switch {
	case err != nil:
		return r, err
	case size == 0:
		return r, device.ErrInvalid
	case size > mostBytes:
		return r, device.ErrOutOfMemory
	}
	if size = device.AlignUp(size, sizeUnit); p.limit != 0 && size > p.limit {
		return r, device.ErrOutOfMemory
	}
	stream, err := d.stream(s)
	if err != nil {
		return r, err
	}
	err = d.callOnce(device.CallAllocAsync, fnMemAllocFromPoolAsync, d.result(), uintptr(size), p.handle, stream)
	if err != nil {
		_ = d.refreshPools() // the failed search may have returned memory of pools
		return device.Region{}, err
	}
	r = device.Region{Addr: device.Addr(d.out.word), Size: size}
	if err := d.refresh(p); err != nil {
		return device.Region{}, err
	}
	at, _ := d.blocks.Search(r.Addr)
	d.blocks.Insert(at, index.AddrEntry[block]{Addr: r.Addr, Value: block{size: size, pool: name}})
	p.blocks++
	return r, nil
}

// FreeAsync implements [device.Pools] by cuMemFreeAsync.
func (d *Device) FreeAsync(a device.Addr, s device.Stream) error {
	return d.count(device.CallFreeAsync, d.freeAsync(a, s))
}

func (d *Device) freeAsync(a device.Addr, s device.Stream) error {
	at, found := d.blocks.Search(a)
	if !found {
		return device.ErrInvalid
	}
	stream, err := d.stream(s)
	if err != nil {
		return err
	}
	if err := d.callOnce(device.CallFreeAsync, fnMemFreeAsync, uintptr(a), stream); err != nil {
		return err
	}
	p, err := d.pool(d.blocks.Entry(at).Value.pool)
	if err == nil {
		p.blocks--
	}
	d.blocks.Delete(at)
	return err
}

// TrimPool implements [device.Pools] by cuMemPoolTrimTo.
func (d *Device) TrimPool(name device.Pool, keep device.Size) error {
	return d.count(device.CallTrimPool, d.trimPool(name, keep))
}

func (d *Device) trimPool(name device.Pool, keep device.Size) error {
	p, err := d.pool(name)
	if err != nil {
		return err
	}
	if err := d.callOnce(device.CallTrimPool, fnMemPoolTrimTo, p.handle, uintptr(keep)); err != nil {
		return err
	}
	return d.refresh(p)
}

// PoolAttribute implements [device.Pools] by cuMemPoolGetAttribute.
func (d *Device) PoolAttribute(name device.Pool, a device.PoolAttribute) (device.Size, error) {
	v, err := d.poolAttribute(name, a)
	return v, d.count(device.CallPoolAttribute, err)
}

func (d *Device) poolAttribute(name device.Pool, a device.PoolAttribute) (device.Size, error) {
	p, err := d.pool(name)
	if err != nil {
		return 0, err
	}
	if a >= device.NumPoolAttributes {
		return 0, device.ErrInvalid
	}
	if err := d.enter(); err != nil {
		return 0, err
	}
	v, err := d.statistic(p, a)
	d.addTime(device.CallPoolAttribute)
	d.leave()
	return v, err
}

// SetPoolAttribute implements [device.Pools] by cuMemPoolSetAttribute.
func (d *Device) SetPoolAttribute(name device.Pool, a device.PoolAttribute, v device.Size) error {
	return d.count(device.CallSetPoolAttribute, d.setPoolAttribute(name, a, v))
}

func (d *Device) setPoolAttribute(name device.Pool, a device.PoolAttribute, v device.Size) error {
	p, err := d.pool(name)
	if err != nil {
		return err
	}
	high := a == device.ReservedHigh || a == device.UsedHigh
	if !(a == device.ReleaseThreshold || high && v == 0 || isFlag(a) && v <= 1) {
		return device.ErrInvalid
	}
	d.out.second = uint64(v)
	return d.callOnce(device.CallSetPoolAttribute, fnMemPoolSetAttribute, p.handle, poolAttributes[a],
		uintptr(unsafe.Pointer(&d.out.second)))
}
