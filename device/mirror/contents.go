package mirror

import "github.com/vramyard/vramyard/device"

// edge and inner are the sizes of marks in bytes: at both ends of a fill, and at each page of a
// range between them. Fills of up to two edges are written and read completely. Doing that for
// larger ones would take seconds for each check of an 80 GiB card; faults of whole pages or
// allocations show at their ends.
const (
	edge  = 4 * device.KiB
	inner = device.Size(64)
)

// repeatContents writes marks to the card after a fill of the model, and reads them back for a
// comparison.
func (d *Device) repeatContents(v *device.Invocation) {
	if v.Call == device.CallCompare && !v.Yes {
		return
	}
	card := d.eachMark(v.Addr, v.Size, func(from, at device.Addr, n device.Size) error {
		c := *v
		c.Addr, c.Size = at, n
		c.On(d.card)
		if v.Call == device.CallFill {
			d.traffic.Written += n
		} else {
			d.traffic.Read += n
			if c.Err == nil && !c.Yes {
				d.differ("the contents written at %v are lost on the card, at %v", from.Add(c.Differs.Sub(at)), c.Differs)
			}
		}
		return c.Err
	})
	d.same(v, card)
}

// eachMark calls f for each part or mark of n bytes at an address of the model, with its addresses
// on the model and on the card, until an error.
func (d *Device) eachMark(a device.Addr, n device.Size, f func(model, card device.Addr, n device.Size) error) error {
	return d.eachSpan(a, n, func(part span, n device.Size) error {
		here, at := a, d.cardAddr(a)
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
