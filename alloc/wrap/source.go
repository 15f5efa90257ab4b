package wrap

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// source is an allocator as a source of regions.
type source struct{ a alloc.Allocator }

// SourceOf returns an allocator as a source of regions, so that strategies can be stacked: a block
// of the lower one is a region of the upper one. Closing the upper one releases its regions and
// does not close a.
//
// A refusal of a for lack of memory is [device.ErrOutOfMemory]. A permanent refusal, and an address
// without a block, is [device.ErrInvalid].
func SourceOf(a alloc.Allocator) device.Source { return source{a} }

func (s source) Reserve(size, align device.Size) (device.Region, error) {
	b, err := s.a.Alloc(alloc.Request{Size: size, Align: align})
	if err != nil {
		return device.Region{}, asDevice(err)
	}
	return device.Region{Addr: b.Addr, Size: b.Size}, nil
}

func (s source) Release(a device.Addr) error { return asDevice(s.a.Free(a)) }

// asDevice returns the device error that corresponds to an allocator's error.
func asDevice(err error) error {
	switch {
	case errors.Is(err, alloc.ErrOutOfMemory):
		return device.ErrOutOfMemory
	case errors.Is(err, alloc.ErrInvalidRequest), errors.Is(err, alloc.ErrInvalidFree), errors.Is(err, alloc.ErrClosed):
		return device.ErrInvalid
	}
	return err
}
