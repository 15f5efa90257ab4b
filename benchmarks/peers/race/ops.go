package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// magic begins a file of operations.
const magic = "VRAMOPS1"

// headerWords is how many words stand before the operations.
const headerWords = 5

// operations are what a driver reads.
type operations struct {
	slots          int
	span           device.Size // of the range
	untimed, churn []workload.Op
}

func operationsOf(p *workload.Program, span device.Size) operations {
	return operations{p.Summary.Slots, span, slices.Concat(p.Fill, p.Settle), p.Churn}
}

func (o operations) write(path string) error {
	b := make([]byte, 0, 8*(headerWords+len(o.untimed)+len(o.churn)))
	b = append(b, magic...)
	for _, n := range []uint64{uint64(o.slots), uint64(len(o.untimed)), uint64(len(o.churn)), uint64(o.span)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	for _, ops := range [][]workload.Op{o.untimed, o.churn} {
		for _, op := range ops {
			b = binary.LittleEndian.AppendUint64(b, uint64(op)) // an Op is packed as the file has it
		}
	}
	return os.WriteFile(path, b, 0o600)
}

func readOperations(path string) (o operations, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return o, err
	}
	if len(b) < 8*headerWords || string(b[:8]) != magic {
		return o, fmt.Errorf("%s: no file of operations", path)
	}
	words := wordsOf(b)
	slots, untimed, churn, ops := words[1], words[2], words[3], words[headerWords:]
	if uint64(len(ops)) != untimed+churn || untimed > uint64(len(ops)) {
		return o, fmt.Errorf("%s: %d operations, not the %d + %d of its header", path, len(ops), untimed, churn)
	}
	o = operations{slots: int(slots), span: device.Size(words[4])}
	for i, w := range ops {
		op := workload.Op(w)
		if uint64(op.Slot()) >= slots {
			return o, fmt.Errorf("%s: operation %d: slot %d of %d", path, i, op.Slot(), slots)
		}
		if uint64(i) < untimed {
			o.untimed = append(o.untimed, op)
		} else {
			o.churn = append(o.churn, op)
		}
	}
	return o, nil
}

func wordsOf(b []byte) []uint64 {
	words := make([]uint64, len(b)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words
}

// each calls f for every operation with its number until it fails.
func (o operations) each(f func(i int, op workload.Op) error) error {
	n := 0
	for _, ops := range [][]workload.Op{o.untimed, o.churn} {
		for _, op := range ops {
			if err := f(n, op); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// hash returns the fingerprint that [workload.Hash] defines, computed as a driver does.
func (o operations) hash() workload.Hash {
	h := uint64(0xcbf29ce484222325)
	_ = o.each(func(_ int, op workload.Op) error { // it never fails
		for _, word := range []uint64{uint64(op.Slot()), uint64(op.Size())} {
			for range 8 {
				h = (h ^ word&0xff) * 0x100000001b3
				word >>= 8
			}
		}
		return nil
	})
	return workload.Hash(h)
}

// errPlacements means that a file of placements has the wrong length.
var errPlacements = errors.New("not one placement for each allocation")
