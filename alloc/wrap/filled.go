package wrap

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Corruption is the error of a strategy that granted or released memory of a live block. Only
// strategies made by [Filled] return it.
type Corruption struct {
	Block  alloc.Block // the live block
	Serial uint64      // ordinal of the grant; the first is 1
	At     device.Addr // first byte that differs from the pattern; 0 if the block cannot be read
	Device error       // error of the device while reading or writing the block; nil if At is set
}

func (c *Corruption) Error() string {
	if c.Device != nil {
		return fmt.Sprintf("alloc: grant %d, %d bytes at %v: %v", c.Serial, uint64(c.Block.Size), c.Block.Addr, c.Device)
	}
	return fmt.Sprintf("alloc: grant %d, %d bytes at %v: overwritten at %v", c.Serial, uint64(c.Block.Size),
		c.Block.Addr, c.At)
}

// Unwrap returns the device's error.
func (c *Corruption) Unwrap() error { return c.Device }

// filledBlock is a live block and its pattern.
type filledBlock struct {
	alloc.Block
	serial uint64
}

// filled is a strategy whose blocks are filled.
type filled struct {
	Forwarder
	memory device.Contents
	live   []filledBlock
	at     map[device.Addr]int // indices into live, by address
	grants uint64
}

// Filled returns s with every block filled with a unique pattern when it is granted. The pattern is
// compared when the block is freed and, for all live blocks, at Check and Close. So the memory
// itself reveals overlapping blocks, and blocks whose memory was released. memory is the capability
// of the device below s itself, not of a wrapper that injects failures.
//
// The error is a [*Corruption], from the call that found it: Alloc if the new block cannot be
// written, Free, Check or Close if a block has changed. A failed Alloc or Free has no effect; Close
// always closes. Each call costs the device's time to fill or compare its block; Check and Close
// compare all live blocks.
func Filled(s alloc.Strategy, memory device.Contents) (alloc.Strategy, error) {
	if memory == nil {
		return nil, errors.New("alloc: Filled without memory")
	}
	return &filled{Forwarder: Forward(s, nil), memory: memory, at: map[device.Addr]int{}}, nil
}

// pattern returns the fill pattern of the block, Knuth's multiplicative hash of the serial, so that
// consecutive grants have different bytes.
func (b filledBlock) pattern() uint32 { return uint32(b.serial * 0x9e3779b97f4a7c15 >> 32) }

func (f *filled) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := f.inner.Alloc(r)
	if err != nil {
		return b, err
	}
	f.grants++
	n := filledBlock{b, f.grants}
	if err := f.memory.Fill(b.Addr, b.Size, n.pattern()); err != nil {
		return alloc.Block{}, errors.Join(&Corruption{Block: b, Serial: n.serial, Device: err}, f.freeRef(b))
	}
	f.at[b.Addr] = len(f.live)
	f.live = append(f.live, n)
	return b, nil
}

func (f *filled) Free(a device.Addr) error { return f.FreeRef(alloc.Block{Addr: a}) }

func (f *filled) FreeRef(b alloc.Block) error {
	a := b.Addr
	i, known := f.at[a]
	if known {
		if err := f.verify(f.live[i]); err != nil {
			return err
		}
	}
	err := f.freeRef(b)
	if err == nil && known {
		last := len(f.live) - 1
		f.live[i] = f.live[last]
		f.at[f.live[i].Addr] = i
		f.live = f.live[:last]
		delete(f.at, a)
	}
	return err
}

// Compact implements [power.Mover]. A pattern moves with its block, after the callback. It is
// compared before the move; a corruption does not stop the moves.
func (f *filled) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (device.Size, error) {
	var found error
	n, err := power.Compact(f.inner, may, func(from, to alloc.Block) {
		i, known := f.at[from.Addr]
		if !known {
			moved(from, to)
			return
		}
		if err := f.verify(f.live[i]); err != nil && found == nil {
			found = err
		}
		moved(from, to)
		delete(f.at, from.Addr)
		f.at[to.Addr] = i
		f.live[i].Block = to
		if err := f.memory.Fill(to.Addr, to.Size, f.live[i].pattern()); err != nil && found == nil {
			found = &Corruption{Block: to, Serial: f.live[i].serial, Device: err}
		}
	})
	return n, errors.Join(found, err)
}

// verify returns a [*Corruption] if a block has changed.
func (f *filled) verify(b filledBlock) error {
	at, same, err := f.memory.Compare(b.Addr, b.Size, b.pattern())
	if err == nil && same {
		return nil
	}
	return &Corruption{Block: b.Block, Serial: b.serial, At: at, Device: err}
}

// verifyAll returns the corruption of the first block that has changed.
func (f *filled) verifyAll() error {
	for _, b := range f.live {
		if err := f.verify(b); err != nil {
			return err
		}
	}
	return nil
}

func (f *filled) Check() error {
	if err := f.verifyAll(); err != nil {
		return err
	}
	return f.inner.Check()
}

func (f *filled) Close() error {
	found := f.verifyAll()
	f.live, f.at = nil, map[device.Addr]int{}
	return errors.Join(found, f.inner.Close())
}
