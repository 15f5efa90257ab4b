package sim

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/handle"
	"github.com/vramyard/vramyard/kit/streampool"
)

var _ device.Pools = (*Device)(nil)

// pools are the pools of a device.
type pools struct {
	first  *streampool.Pool // pool zero; nil until it is used
	others handle.Table[*streampool.Pool]
}

func (t *pools) all(yield func(*streampool.Pool) bool) {
	if t.first != nil && !yield(t.first) {
		return
	}
	for p := range t.others.All {
		if !yield(*p) {
			return
		}
	}
}

// pollAll polls the events of pools and trims them to their thresholds.
func (t *pools) pollAll() {
	for p := range t.all {
		_, _ = p.Poll() // backing never fails
	}
}

// backing gives pools device memory without counting driver calls. Memory that a pool takes costs
// the time of a reservation, charged to AllocAsync; memory that it returns costs the time of a
// release, charged to TrimPool. Pools never pass invalid arguments.
type backing struct{ *Device }

func (b backing) Reserve(size, align device.Size) (device.Region, error) {
	r, ok := b.obtain(size, align, poolBit)
	if !ok {
		return device.Region{}, device.ErrOutOfMemory
	}
	b.addTime(device.CallAllocAsync, b.costs.Of(device.CallReserve, r.Size, b.cfg.Bandwidth))
	return r, nil
}

// Release implements [device.Source]. Unlike the device's Release it does not wait for work.
func (b backing) Release(a device.Addr) error {
	p, _ := b.regions.Search(a)
	b.addTime(device.CallTrimPool, b.costs.Of(device.CallRelease, b.returnRegion(p, a), b.cfg.Bandwidth))
	return nil
}

func (b backing) NewEvent() (device.Event, error) { return b.newEvent() }

func (b backing) DestroyEvent(e device.Event) error { return b.destroyEvent(e) }

func (b backing) Record(e device.Event, s device.Stream) error {
	v, err := b.event(e)
	if err == nil {
		b.record(v, s)
	}
	return err
}

func (b backing) Done(e device.Event) (bool, error) {
	v, err := b.event(e)
	return err == nil && b.finished(v.mark), err
}

func (b backing) Wait(s device.Stream, e device.Event) error {
	v, err := b.event(e)
	if err == nil {
		b.wait(s, v)
	}
	return err
}

func (b backing) SyncDevice() error {
	b.waitForAll(device.CallAllocAsync)
	return nil
}

// newPool returns an empty pool with a limit in bytes and the default attributes.
func (d *Device) newPool(limit device.Size) *streampool.Pool {
	return streampool.New(backing{d}, streampool.Config{
		Region: streampool.DefaultRegion, Limit: limit, FollowEvents: true, ReuseFinished: true, InsertWaits: true,
	})
}

func (d *Device) pool(p device.Pool) (*streampool.Pool, error) {
	t := &d.pools
	if p == 0 {
		if t.first == nil {
			t.first = d.newPool(0)
		}
		return t.first, nil
	}
	if i, ok := t.others.Find(uint64(p)); ok {
		return *t.others.At(i), nil
	}
	return nil, device.ErrPool
}

// NewPool implements [device.Pools]. There may be 268 million pools.
func (d *Device) NewPool(limit device.Size) (device.Pool, error) {
	p, slot, ok := d.pools.others.Add()
	if !ok {
		return 0, d.count(device.CallNewPool, 0, device.ErrOutOfMemory)
	}
	*slot = d.newPool(limit)
	return device.Pool(p), d.count(device.CallNewPool, 0, nil)
}

// DestroyPool implements [device.Pools]. It waits for the work that may still use freed blocks. It
// fails with [device.ErrBusy] if the pool has blocks, with [device.ErrPool] if it does not exist,
// and with [device.ErrInvalid] for pool zero.
func (d *Device) DestroyPool(p device.Pool) error {
	if p == 0 {
		return d.count(device.CallDestroyPool, 0, device.ErrInvalid)
	}
	pool, err := d.pool(p)
	if err == nil && pool.Stats().Live > 0 {
		err = device.ErrBusy
	}
	if err == nil {
		if !pool.Settled() {
			d.waitForAll(device.CallDestroyPool)
		}
		_, _ = pool.Synchronize(), pool.Close() // backing never fails
		i, _ := d.pools.others.Find(uint64(p))
		*d.pools.others.At(i) = nil
		d.pools.others.Remove(i)
	}
	return d.count(device.CallDestroyPool, 0, err)
}

// AllocAsync implements [device.Pools]. Sizes are rounded up to 512 B. A pool grows by regions of
// 32 MiB, or as many whole 2 MiB pages as remain.
func (d *Device) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	pool, err := d.pool(p)
	switch {
	case err != nil:
	case size == 0:
		err = device.ErrInvalid
	case size > streampool.MaxRequest:
		err = device.ErrOutOfMemory
	}
	if err != nil {
		return device.Region{}, d.count(device.CallAllocAsync, size, err)
	}
	h, err := pool.Alloc(streampool.Request{Size: size, Stream: s})
	if err != nil {
		return device.Region{}, d.count(device.CallAllocAsync, size, device.ErrOutOfMemory)
	}
	c := pool.Show(h)
	return device.Region{Addr: c.Addr, Size: c.Size}, d.count(device.CallAllocAsync, c.Size, nil)
}

// FreeAsync implements [device.Pools]. It costs O(pools).
func (d *Device) FreeAsync(a device.Addr, s device.Stream) error {
	for p := range d.pools.all {
		if h := p.Find(a); h != streampool.None {
			p.Free(h, s)
			return d.count(device.CallFreeAsync, 0, nil)
		}
	}
	return d.count(device.CallFreeAsync, 0, device.ErrInvalid)
}

// TrimPool implements [device.Pools]. A freed block counts as in use until its work has finished.
func (d *Device) TrimPool(p device.Pool, keep device.Size) error {
	pool, err := d.pool(p)
	if err == nil {
		_, _ = pool.Finish() // backing never fails
		_, _ = pool.Trim(keep, false)
	}
	return d.count(device.CallTrimPool, 0, err)
}

func (d *Device) PoolAttribute(p device.Pool, a device.PoolAttribute) (v device.Size, err error) {
	pool, err := d.pool(p)
	if err == nil {
		v, err = pool.Attribute(a)
	}
	return v, d.count(device.CallPoolAttribute, 0, err)
}

func (d *Device) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	pool, err := d.pool(p)
	if err == nil {
		err = pool.SetAttribute(a, v)
	}
	return d.count(device.CallSetPoolAttribute, 0, err)
}
