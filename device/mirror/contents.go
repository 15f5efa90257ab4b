package mirror

import "github.com/vramyard/vramyard/device"

// edge and inner in bytes are how large marks are: at both ends of what is filled, and at each page of a range
// between them. A card is written and read byte for byte up to two edges. More would take a card of 80 GiB
// seconds for each look at its blocks; what a card does wrong by pages or by allocations shows at their ends.
const (
	edge  = 4 * device.KiB
	inner = device.Size(64)
)

// MemoryInfo implements [device.MemoryInfo].
func (d *Device) MemoryInfo() (free, total device.Size, err error) {
	free, total, err = d.Forwarder.MemoryInfo()
	if d.info == nil || !d.alike() {
		return free, total, err
	}
	f, t, card := d.info.MemoryInfo()
	if d.same(err, card, "memory-info") && total != 0 && !d.pooled && (f != free || t != total) {
		d.note("memory-info: the model says that %d of %d bytes are free, the card that %d of %d are", uint64(free), uint64(total), uint64(f), uint64(t))
	}
	return free, total, err
}

// Fill implements [device.Contents] on the model, and marks on the card.
func (d *Device) Fill(a device.Addr, n device.Size, pattern uint32) error {
	err := d.Forwarder.Fill(a, n, pattern)
	if d.contents == nil || !d.alike() || err != nil || n == 0 {
		return err
	}
	card := d.marked(a, n, func(_ device.Addr, at device.Addr, n device.Size) error {
		d.traffic.Written += n
		return d.contents.Fill(at, n, pattern)
	})
	d.same(nil, card, "fill %v+%d", a, uint64(n))
	return nil
}

// Compare implements [device.Contents] on the model, and reads marks from the card if the model has them.
func (d *Device) Compare(a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool, err error) {
	differs, same, err = d.Forwarder.Compare(a, n, pattern)
	if d.contents == nil || !d.alike() || !same || err != nil || n == 0 {
		return differs, same, err
	}
	card := d.marked(a, n, func(from, at device.Addr, n device.Size) error {
		d.traffic.Read += n
		differs, same, err := d.contents.Compare(at, n, pattern)
		if err == nil && !same {
			d.note("what was written at %v is not there on the card, where that is %v", from.Add(differs.Sub(at)), differs)
		}
		return err
	})
	d.same(nil, card, "compare %v+%d", a, uint64(n))
	return 0, true, nil
}

// marked calls f for each part or mark of n bytes at an address of the model's, with its addresses on the model and on the card,
// until an error.
func (d *Device) marked(a device.Addr, n device.Size, f func(model, card device.Addr, n device.Size) error) error {
	return d.each(a, n, func(part span, n device.Size) error {
		here, at := a, d.at(a)
		a = a.Add(n)
		if n <= 2*edge || d.extent == Bytes {
			return f(here, at, n)
		}
		if err := f(here, at, edge); err != nil {
			return err
		}
		if part.kind == addresses {
			page := d.vm.Granularity()
			for next := device.AlignUp(at.Add(edge), page); next.Add(inner) <= at.Add(n-edge); next = next.Add(page) {
				if err := f(here.Add(next.Sub(at)), next, inner); err != nil {
					return err
				}
			}
		}
		return f(here.Add(n-edge), at.Add(n-edge), edge)
	})
}
