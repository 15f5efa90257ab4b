package cuda

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/vramyard/vramyard/device"
)

// window is the number of bytes copied to the host at once.
const window = device.MiB

// Fill implements [device.Contents] by cuMemset and waits for it. Partial words are written byte by
// byte.
func (d *Device) Fill(a device.Addr, n device.Size, pattern uint32) error {
	return d.count(device.CallFill, d.fill(a, n, pattern))
}

func (d *Device) fill(a device.Addr, n device.Size, pattern uint32) error {
	if err := d.accessible(a, n, device.AccessReadWrite); err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	defer d.addTime(device.CallFill)
	for n > 0 {
		part, _, _ := d.partAt(a)
		part = min(part, n)
		if err := d.fillPart(a, part, pattern); err != nil {
			return err
		}
		a, n = a.Add(part), n-part
	}
	return d.call(fnStreamSynchronize, 0)
}

// fillPart fills memory within one allocation.
func (d *Device) fillPart(a device.Addr, n device.Size, pattern uint32) error {
	for n > 0 {
		step, err := device.Size(1), error(nil)
		if a%4 == 0 && n >= 4 {
			step = n &^ 3
			err = d.call(fnMemsetD32, uintptr(a), uintptr(pattern), uintptr(step/4))
		} else {
			err = d.call(fnMemsetD8, uintptr(a), uintptr(byte(pattern>>(8*(a%4)))), 1)
		}
		if err != nil {
			return err
		}
		a, n = a.Add(step), n-step
	}
	return nil
}

// Compare implements [device.Contents] by copies of at most 1 MiB to the host.
func (d *Device) Compare(a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool, err error) {
	differs, same, err = d.compare(a, n, pattern)
	return differs, same, d.count(device.CallCompare, err)
}

func (d *Device) compare(a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool, err error) {
	if err := d.accessible(a, n, device.AccessRead); err != nil {
		return 0, false, err
	}
	if err := d.enter(); err != nil {
		return 0, false, err
	}
	defer d.leave()
	defer d.addTime(device.CallCompare)
	host := make([]byte, min(n, window))
	want := words(pattern, len(host))
	for n > 0 {
		part, _, _ := d.partAt(a)
		got := host[:min(part, n, window)]
		if err := d.call(fnMemcpyDtoH, uintptr(unsafe.Pointer(&got[0])), uintptr(a), uintptr(len(got))); err != nil {
			return 0, false, err
		}
		expect := want[a%4:][:len(got)]
		if !bytes.Equal(got, expect) {
			for i := range got {
				if got[i] != expect[i] {
					return a.Add(device.Size(i)), false, nil
				}
			}
		}
		a, n = a.Add(device.Size(len(got))), n-device.Size(len(got))
	}
	return 0, true, nil
}

// words returns the pattern as bytes, at least n+3 of them, starting at a word boundary.
func words(pattern uint32, n int) []byte {
	one := binary.LittleEndian.AppendUint32(nil, pattern)
	return bytes.Repeat(one, n/4+2)
}

// accessible returns an error if n bytes at a do not permit the access.
func (d *Device) accessible(a device.Addr, n device.Size, access device.Access) (err error) {
	for n > 0 {
		part, has, ok := d.partAt(a)
		if !ok {
			return device.ErrUnmapped
		}
		if has < access {
			err = device.ErrAccess
		}
		part = min(part, n)
		if _, carry := bits.Add64(uint64(a), uint64(part), 0); carry != 0 {
			return device.ErrUnmapped
		}
		a, n = a.Add(part), n-part
	}
	return err
}

// partAt returns the number of bytes from address a to the end of its region, mapping or block, and
// their permitted access.
func (d *Device) partAt(a device.Addr) (n device.Size, access device.Access, ok bool) {
	if p, found := d.regions.Floor(a); found {
		if e := d.regions.Entry(p); a.Sub(e.Addr) < e.Value.size {
			return e.Value.size - a.Sub(e.Addr), device.AccessReadWrite, true
		}
	}
	if p, found := d.blocks.Floor(a); found {
		if e := d.blocks.Entry(p); a.Sub(e.Addr) < e.Value.size {
			return e.Value.size - a.Sub(e.Addr), device.AccessReadWrite, true
		}
	}
	if p, found := d.mappings.Floor(a); found {
		if e := d.mappings.Entry(p); a.Sub(e.Addr) < e.Value.Size {
			return e.Value.Size - a.Sub(e.Addr), e.Value.Access, true
		}
	}
	return 0, 0, false
}
