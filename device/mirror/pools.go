package mirror

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

// gone is a pool that no card has.
const gone = ^device.Pool(0)

// pool returns a pool as the card has it.
func (d *Device) pool(p device.Pool) device.Pool {
	if c, ok := d.named[p]; ok {
		return c
	}
	return gone
}

// NewPool implements [device.Pools].
func (d *Device) NewPool(most device.Size) (device.Pool, error) {
	p, err := d.Forwarder.NewPool(most)
	if d.pools != nil && d.alike() {
		c, card := d.pools.NewPool(most)
		if d.same(err, card, "new-pool %d", uint64(most)) {
			d.named[p] = c
		}
	}
	return p, err
}

// DestroyPool implements [device.Pools].
func (d *Device) DestroyPool(p device.Pool) error {
	err := d.Forwarder.DestroyPool(p)
	if d.pools != nil && d.alike() && d.same(err, d.pools.DestroyPool(d.pool(p)), "destroy-pool %#x", uint64(p)) {
		delete(d.named, p)
	}
	return err
}

// AllocAsync implements [device.Pools]. What the model's pool has no room for is not asked of the card's, which grows
// by other steps.
func (d *Device) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	r, err := d.Forwarder.AllocAsync(p, size, s)
	if d.pools != nil && d.alike() && !errors.Is(err, device.ErrOutOfMemory) {
		c, card := d.pools.AllocAsync(d.pool(p), size, s)
		d.took(pooled, r, err, c, card, 0, "alloc-async %d on stream %d", uint64(size), uint64(s))
		d.pooled = d.pooled || err == nil
	}
	return r, err
}

// FreeAsync implements [device.Pools].
func (d *Device) FreeAsync(a device.Addr, s device.Stream) error {
	err := d.Forwarder.FreeAsync(a, s)
	if d.pools != nil && d.alike() && d.same(err, d.pools.FreeAsync(d.at(a), s), "free-async %v on stream %d", a, uint64(s)) {
		d.left(a)
	}
	return err
}

// TrimPool implements [device.Pools].
func (d *Device) TrimPool(p device.Pool, keep device.Size) error {
	err := d.Forwarder.TrimPool(p, keep)
	if d.pools != nil && d.alike() {
		d.same(err, d.pools.TrimPool(d.pool(p), keep), "trim-pool %#x to %d", uint64(p), uint64(keep))
	}
	return err
}

// PoolAttribute implements [device.Pools]. Settings are compared, figures are not.
func (d *Device) PoolAttribute(p device.Pool, a device.PoolAttribute) (device.Size, error) {
	v, err := d.Forwarder.PoolAttribute(p, a)
	if d.pools != nil && d.alike() {
		c, card := d.pools.PoolAttribute(d.pool(p), a)
		if d.same(err, card, "pool-attribute %v", a) && setting(a) && v != c {
			d.note("pool-attribute %v: the model says %d, the card %d", a, uint64(v), uint64(c))
		}
	}
	return v, err
}

// setting reports whether an attribute is what somebody has set.
func setting(a device.PoolAttribute) bool {
	switch a {
	case device.FollowEvents, device.ReuseFinished, device.InsertWaits, device.ReleaseThreshold:
		return true
	}
	return false
}

// SetPoolAttribute implements [device.Pools].
func (d *Device) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	err := d.Forwarder.SetPoolAttribute(p, a, v)
	if d.pools != nil && d.alike() {
		d.same(err, d.pools.SetPoolAttribute(d.pool(p), a, v), "set-pool-attribute %v to %d", a, uint64(v))
	}
	return err
}
