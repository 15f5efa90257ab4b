package workload

import (
	"fmt"
	"strconv"

	"github.com/vramyard/vramyard/device"
)

// Op is an operation on a slot: an allocation of Size bytes into it or, if Size is 0, the free of
// its block.
//
// Slot and size are packed into one word, because a timed loop that reads fewer bytes disturbs the
// allocator's caches less.
type Op uint64

// sizeBits is the number of bits of an Op that hold the size. The others hold the slot.
const sizeBits = 40

// newOp returns an operation.
//
// Precondition: slot < MaxLive, size <= MaxSize.
func newOp(slot uint32, size device.Size) Op { return Op(slot)<<sizeBits | Op(size) }

// Slot returns the number of the slot.
func (o Op) Slot() uint32 { return uint32(o >> sizeBits) }

// Size returns the bytes to allocate, 0 for a free.
func (o Op) Size() device.Size { return device.Size(o & (1<<sizeBits - 1)) }

// IsFree reports whether the operation is a free.
func (o Op) IsFree() bool { return o.Size() == 0 }

// AtMost returns the operation with its size limited to most bytes, for a strategy with a maximum
// size. A free is unchanged.
//
// Precondition: most > 0.
func (o Op) AtMost(most device.Size) Op { return newOp(o.Slot(), min(o.Size(), most)) }

// Summary describes the operations of a workload.
type Summary struct {
	Slots      int         `json:"slots"`            // number of slots
	Pairs      int         `json:"pairs"`            // allocations of the churn, each with a free unless it lives on
	PeakLive   device.Size `json:"peak_live_bytes"`  // most bytes live at once, in any part
	PeakBlocks int         `json:"peak_live_blocks"` // most blocks live at once, in any part
	Hash       Hash        `json:"hash"`             // of every operation of every part, in order
}

// Hash is a fingerprint of operations: 64-bit FNV-1a over the slot and the size of each operation,
// as 8 bytes each, little-endian.
type Hash uint64

// String returns 16 hexadecimal digits.
func (h Hash) String() string { return fmt.Sprintf("%016x", uint64(h)) }

// MarshalText returns the same as String, because JSON numbers do not hold 64 bits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (h *Hash) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*h = Hash(n)
	return err
}

// meter computes a Summary.
type meter struct {
	Summary
	allocs int
	live   device.Size
	blocks int
	sizes  []device.Size // by slot, 0 if it is empty
}

func newMeter() *meter { return &meter{Summary: Summary{Hash: fnvOffset}} }

func (m *meter) add(o Op) {
	slot, size := int(o.Slot()), o.Size()
	if slot >= len(m.sizes) {
		m.sizes = append(m.sizes, make([]device.Size, slot+1-len(m.sizes))...)
		m.Slots = slot + 1
	}
	if size == 0 {
		m.live -= m.sizes[slot]
		m.blocks--
	} else {
		m.allocs++
		m.live += size
		m.blocks++
		m.PeakLive = max(m.PeakLive, m.live)
		m.PeakBlocks = max(m.PeakBlocks, m.blocks)
	}
	m.sizes[slot] = size
	m.Hash = m.Hash.extend(uint64(slot)).extend(uint64(size))
}

// The constants of 64-bit FNV-1a.
const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// extend returns the hash extended by a word.
func (h Hash) extend(word uint64) Hash {
	for range 8 {
		h = (h ^ Hash(word&0xff)) * fnvPrime
		word >>= 8
	}
	return h
}

// sink passes operations to an iteration, and drops them once it has ended.
type sink struct {
	yield func(Op) bool
	done  bool // the iteration has ended
}

func (s *sink) alloc(slot uint32, size device.Size) { s.put(newOp(slot, size)) }

func (s *sink) free(slot uint32) { s.put(newOp(slot, 0)) }

func (s *sink) put(o Op) { s.done = s.done || !s.yield(o) }
