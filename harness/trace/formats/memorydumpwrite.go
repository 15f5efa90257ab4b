package formats

import (
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
)

// DumpHistory is how many sizes TensorFlow keeps for the snapshots of a MemoryDump.
const DumpHistory = 4096

// DumpExtras are the fields of a MemoryDump that are not in a memory map; TensorFlow fills them in
// builds with TENSORFLOW_MEM_DEBUG only. Allocations and frees are numbered from 1 as actions.
type DumpExtras struct {
	Op      func(tag uint64) string // name of the operation that a tag stands for; nil: none has a name
	Actions map[device.Addr]uint64  // number of the action that granted each live block
	First   uint64                  // number of the action of the first size in History
	History []device.Size           // bytes in use after each action from First on
}

// WriteMemoryDump writes a memory map as TensorFlow's MemoryDump, in the order of its fields.
// Fields of value zero are left out, as proto3 has it.
func WriteMemoryDump(w io.Writer, m *inspect.MemoryMap, x DumpExtras) error {
	b := dumpText(nil, 1, m.Name)
	for _, s := range m.Bins {
		b = dumpMessage(b, 2, dumpNumbers(nil, uint64(s.Bin), uint64(s.BytesInUse), uint64(s.BytesInBin),
			uint64(s.ChunksInUse), uint64(s.ChunksInBin)))
	}
	for _, c := range m.Chunks {
		k := dumpNumbers(nil, uint64(c.Addr), uint64(c.Size), uint64(c.Requested), uint64(c.Bin))
		if x.Op != nil && c.InUse {
			k = dumpText(k, 5, x.Op(c.Tag))
		}
		k = dumpNumber(k, 6, c.FreedAt)
		if c.InUse {
			k = dumpNumber(dumpNumber(k, 7, x.Actions[c.Addr]), 8, 1)
		}
		b = dumpMessage(b, 3, k)
	}
	for i, n := range x.History {
		b = dumpMessage(b, 4, dumpNumbers(nil, x.First+uint64(i), uint64(n)))
	}
	t := m.Stats
	s := dumpNumbers(nil, t.Allocs, uint64(t.BytesInUse), uint64(t.PeakInUse), uint64(t.LargestAlloc))
	if t.Fragmentation != 0 {
		s = protowire.AppendFixed32(protowire.AppendTag(s, 5, protowire.Fixed32Type), math.Float32bits(t.Fragmentation))
	}
	_, err := w.Write(dumpMessage(b, 5, s))
	return err
}

// dumpNumbers appends numbers as the fields from 1 on.
func dumpNumbers(b []byte, numbers ...uint64) []byte {
	for i, n := range numbers {
		b = dumpNumber(b, protowire.Number(i+1), n)
	}
	return b
}

func dumpNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func dumpText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func dumpMessage(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}
