package bfc_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

func TestHumanBytes(t *testing.T) {
	for n, want := range map[device.Size]string{
		0: "0B", 1: "1B", 1023: "1023B",
		1024: "1.0KiB", 1536: "1.5KiB", 1024*1024 - 1: "1024.0KiB",
		mib: "1.00MiB", 1572864: "1.50MiB",
		mib + 1023:    "1.00MiB", // the division cuts off what rounding would keep
		128 * mib:     "128.00MiB",
		gib:           "1.00GiB",
		device.TiB:    "1.00TiB",
		1 << 50:       "1.00PiB",
		1 << 60:       "1.00EiB",
		math.MaxInt64: "8.00EiB",
	} {
		require.Equal(t, want, bfc.HumanBytes(n), "%d", n)
	}
}

func TestMemoryMapIsJSON(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 2048, Timing: true}, sim.Config{})
	b := r.alloc(500)
	r.alloc(256)
	r.free(b)
	raw, err := json.Marshal(r.MemoryMap())
	require.NoError(t, err)
	var m struct {
		Name  string
		Stats map[string]float64
		Bins  []map[string]float64
		Chunk []any
	}
	require.NoError(t, json.Unmarshal(raw, &m))
	require.Equal(t, "bfc", m.Name)
	require.Equal(t, 2.0, m.Stats["num_allocs"])
	require.Equal(t, 1.0, m.Bins[1]["chunks_in_bin"])
	require.Contains(t, string(raw),
		`{"address":139637976727552,"size":512,"requested_size":0,"bin":1,"in_use":false,"freed_at_count":1}`)
	require.Contains(t, string(raw), `{"address":139637976728064,"size":256,"requested_size":256,"bin":-1,"in_use":true}`)
}

func TestFragmentationIsZeroWhereNothingIsFree(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 1024}, sim.Config{})
	require.Zero(t, r.Fragmentation(), "no memory yet")
	b := r.alloc(256)
	r.alloc(256)
	require.Zero(t, r.Fragmentation(), "one free chunk")
	r.free(b)
	require.InDelta(t, 1.0/3, r.Fragmentation(), 1e-9, "256 of 768 outside the largest")
	r.alloc(256)
	r.alloc(512)
	require.Zero(t, r.Fragmentation(), "nothing free")
	_, err := json.Marshal(r.MemoryMap())
	require.NoError(t, err)
}

func TestReportHasThePartsInOrder(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 4096, Timing: true}, sim.Config{})
	b := r.alloc(1000)
	_, err := r.Alloc(alloc.Request{Size: 256, Tag: 7})
	require.NoError(t, err)
	r.alloc(256)
	r.free(b)
	q := alloc.Request{Size: 1800, Origin: alloc.OriginOf(31, 3)}
	text := r.AppendReport([]byte("before\n"), q)
	lines := strings.Split(string(text), "\n")
	require.Equal(t, "before", lines[0])
	require.Equal(t, "Allocator (bfc) ran out of memory: a request of 1.8KiB, rounded to 2048 bytes, tag 0, "+
		"site 0x1f, thread 3", lines[1])
	require.Equal(t, "If fragmentation is the cause (3.5KiB free, the largest chunk 2.5KiB), "+
		"TF_GPU_ALLOCATOR=cuda_malloc_async may help.", lines[2])
	require.Equal(t, "Bin (256): chunks 2, in use 2; 512B allocated, 512B in use, 512B requested by clients.", lines[3])
	require.Equal(t, "Request of 1.8KiB, rounded to 2.0KiB, tag 0, belongs to bin 3 of 2.0KiB; its "+
		"free chunks:", lines[24])
	require.Equal(t, []string{
		"  size 2.5KiB, requested 0B, free, bin 3, prev: size 256B, requested 256B, in use, bin -1",
		"Region of 4096 bytes at 0x7f0000000000:",
		"  Free   0x7f0000000000 of 1024 bytes, next 1, freed at 1",
		"  In use 0x7f0000000400 of 256 bytes, next 2, requested 256, tag 7, freed at 0",
		"  In use 0x7f0000000500 of 256 bytes, next 3, requested 256, tag 0, freed at 0",
		"  Free   0x7f0000000600 of 2560 bytes, next 18446744073709551615, freed at 0",
		"Chunks in use by size:",
		"  2 of 256 bytes: 512B",
		"Sum of chunks in use: 512B",
		"Pool 4096 bytes, limit 4096, left 0, next region 8192",
		"Limit: 4096",
		"InUse: 512",
		"MaxInUse: 1536",
		"NumAllocs: 3",
		"MaxAllocSize: 1024",
		r.Rendering(),
		"",
	}, lines[25:])
}

func TestReportOf2016HasNoHint(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2016, Limit: 4096}, sim.Config{})
	text := string(r.AppendReport(nil, alloc.Request{Size: 8192, Tag: 9}))
	require.Contains(t, text, "a request of 8.0KiB, rounded to 8192 bytes, tag 9\nBin (256)")
}

func TestReportOfAnythingEnds(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: 4096, Spatial: true}, sim.Config{})
	require.Contains(t, string(r.AppendReport(nil, alloc.Request{Size: math.MaxUint64})), inspect.NoMemoryRendering)
	r.alloc(256)
	require.Contains(t, string(r.AppendReport(nil, alloc.Request{})), "belongs to bin 0")
}

func TestRendering(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 700}, sim.Config{})
	require.Equal(t, inspect.NoMemoryRendering, r.Rendering())
	r.alloc(1)
	require.Equal(t, "*"+strings.Repeat("x", 49)+strings.Repeat("_", 50), r.Rendering())
}
