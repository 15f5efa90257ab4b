package propstest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props"
)

// TestWorkloadsAreThoseOfTheCatalogue holds what each workload is, so that figures of
// different times stay comparable; package workload holds its operations to the last bit.
func TestWorkloadsAreThoseOfTheCatalogue(t *testing.T) {
	for _, c := range []struct {
		workload Workload
		name     string
		want     string
	}{
		{Workload{}.At(10), "lognormal", "lognormal live=10 pairs=1000000 seed=42"},
		{Lognormal.At(10).Over(7), "lognormal", "lognormal live=10 pairs=7 seed=42"},
		{LogUniform(256, device.MiB).At(10), "256B-1MiB", "loguniform live=10 pairs=1000000 least=256 most=1048576 seed=42"},
		{Uniform(1, 16*device.KiB).At(10), "uniform-1B-16KiB", "uniform live=10 pairs=1000000 least=1 most=16384 seed=42"},
		{W1.At(10), "w1", "w1 live=10 pairs=1000000 seed=42"},
		{W2, "w2", "w2 steps=300 seed=42"},
		{W3, "w3", "w3 pairs=1000000 seed=42"},
	} {
		w := c.workload.withDefaults()
		require.Equal(t, c.name, w.Name)
		require.Len(t, w.Live, 1)
		p, err := w.program(w.Live[0])
		require.NoError(t, err)
		require.Equal(t, c.want, p.Workload.String())
		require.Equal(t, w.Live[0], p.Summary.PeakBlocks, "what the name of the benchmark says")
	}
	_, err := Workload{Shape: "w4"}.program(1)
	require.ErrorContains(t, err, `unknown workload "w4"`)
	_, err = Lognormal.program(0)
	require.ErrorContains(t, err, "live: want 1 to")
}

// pile grants the next bytes of its one region and takes everything back when all is freed.
type pile struct {
	alloc.Strategy
	region device.Region
	next   device.Addr
	live   int
}

func (p *pile) Alloc(r alloc.Request) (alloc.Block, error) {
	if p.next.Add(r.Size) > p.region.End() {
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	b := alloc.Block{Addr: p.next, Size: r.Size}
	p.next = b.Addr.Add(b.Size)
	p.live++
	return b, nil
}

func (p *pile) Free(device.Addr) error {
	if p.live--; p.live == 0 {
		p.next = p.region.Addr
	}
	return nil
}

func (p *pile) Stats() alloc.Stats         { return alloc.Stats{Limit: p.region.Size} }
func (p *pile) Close() error               { return nil }
func (p *pile) MaxRequest() device.Size    { return device.KiB }
func (p *pile) MetadataBytes() device.Size { return 24 }

// piled is a pile with a region of n bytes.
func piled(n device.Size) props.Subject {
	return props.Subject{Name: "pile", New: func(src device.Source) (alloc.Strategy, error) {
		r, err := src.Reserve(n, 0)
		return &pile{region: r, next: r.Addr}, err
	}}
}

// TestBenchReports runs one benchmark of few pairs, so that no figure depends on the machine.
func TestBenchReports(t *testing.T) {
	was := flag.Lookup("test.benchtime").Value.String()
	require.NoError(t, flag.Set("test.benchtime", "25x"))
	defer func() { require.NoError(t, flag.Set("test.benchtime", was)) }()

	p, err := Uniform(4*device.KiB, 4*device.KiB).Over(10).program(1)
	require.NoError(t, err)
	calls := 0
	var c *cell
	r := testing.Benchmark(func(b *testing.B) {
		calls++
		if c == nil {
			c = newCell(b, piled(4*device.KiB), p)
		}
		c.bench(b)
	})
	require.NotZero(t, calls)
	require.Equal(t, 25, r.N)
	require.InDelta(t, 1, r.Extra["address/peak-live"], 0, "one block of 1 KiB at a time")
	require.InDelta(t, 4, r.Extra["reserved/peak-live"], 0)
	require.InDelta(t, 24, r.Extra["metadata-B/block"], 0)
	require.Contains(t, r.Extra, "ns/op", "by the clock of package bench")

	skipped := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { skipped = b.Skipped() }()
		newCell(b, piled(512), p)
	})
	require.True(t, skipped, "a limit of half a block")
}

func TestSteadyReportsRunningOut(t *testing.T) {
	w := newSteady(nothing{}, 10, workload.Lognormal(), func() {})
	require.ErrorIs(t, w.warm(), alloc.ErrOutOfMemory)
}

// nothing is a strategy that has no memory.
type nothing struct{ alloc.Strategy }

func (nothing) Alloc(alloc.Request) (alloc.Block, error) { return alloc.Block{}, alloc.ErrOutOfMemory }
