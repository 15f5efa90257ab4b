package propstest

import (
	"encoding/binary"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// TestSteadyIsTheSameEverywhere hashes slots and sizes as the benchmarks draw them, so that
// figures of different times stay comparable.
func TestSteadyIsTheSameEverywhere(t *testing.T) {
	for _, c := range []struct {
		workload Workload
		want     uint64
	}{
		{Lognormal, 0x0edc64d56daa2963},
		{LogUniform(256, device.MiB), 0xb71085150b14ec57},
		{Uniform(1, 16*device.KiB), 0x8b0adb957335ee42},
		{LogUniform(16*device.KiB, device.MiB), 0x58158112a590e138},
		{Uniform(16*device.KiB, 16*device.KiB), 0x0f80c0d4c2a20d85},
	} {
		w := newSteady(nothing{}, 1000, c.workload.Size)
		h := fnv.New64a()
		for range 100_000 {
			word := binary.LittleEndian.AppendUint64(nil, w.rng.Below(1000))
			h.Write(binary.LittleEndian.AppendUint64(word, uint64(w.size())))
		}
		require.Equal(t, c.want, h.Sum64(), "%s: %016x", c.workload.Name, h.Sum64())
	}
}

func TestSteadyReportsRunningOut(t *testing.T) {
	w := newSteady(nothing{}, 10, Lognormal.Size)
	require.ErrorIs(t, w.warm(), alloc.ErrOutOfMemory)
}

// nothing is a strategy that has no memory.
type nothing struct{ alloc.Strategy }

func (nothing) Alloc(alloc.Request) (alloc.Block, error) { return alloc.Block{}, alloc.ErrOutOfMemory }
