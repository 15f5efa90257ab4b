package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// counting is a strategy that grants everything and counts.
type counting struct {
	alloc.Strategy
	allocs, frees int
	largest       device.Size
}

func (c *counting) Alloc(r alloc.Request) (alloc.Block, error) {
	c.allocs++
	c.largest = max(c.largest, r.Size)
	return alloc.Block{Addr: device.Addr(c.allocs), Size: r.Size}, nil
}

func (c *counting) Free(device.Addr) error { c.frees++; return nil }

func (c *counting) Close() error { return nil }

// countingCandidate returns a candidate that notes each of its instances.
func countingCandidate(all *[]*counting) Candidate {
	return Candidate{Name: "counting", New: func(device.Source) (alloc.Strategy, error) {
		*all = append(*all, new(counting))
		return (*all)[len(*all)-1], nil
	}}
}

// program returns the operations of a shape with its parameters set.
func program(t *testing.T, name string, set func(*workload.Params)) *workload.Program {
	t.Helper()
	s, err := workload.Lookup(name)
	require.NoError(t, err)
	p := s.Default
	set(&p)
	w, err := s.New(p)
	require.NoError(t, err)
	return w.Program()
}

// naming is a strategy that calls its blocks 1, 2, 3 and lays them a GiB apart.
type naming struct{ counting }

func (n *naming) AddrOf(name device.Addr) device.Addr {
	return sim.Base.Add(device.GiB * device.Size(name))
}

func TestAddressesOfNamedBlocksAreCounted(t *testing.T) {
	c := NewWorkload(program(t, "uniform", func(p *workload.Params) {
		p.Live, p.Pairs, p.Least, p.Most = 1, 10, device.KiB, device.KiB
	}), workload.MaxSize)
	k := Candidate{Name: "naming", Device: replay.SimTarget(sim.Config{Capacity: device.KiB})}
	k.New = func(src device.Source) (alloc.Strategy, error) {
		_, err := src.Reserve(device.KiB, 0) // what addresses count from
		return new(naming), err
	}
	f, err := c.Figures(k)
	require.NoError(t, err)
	require.True(t, f.Named)
	require.Equal(t, (1+2+10)*device.GiB+device.KiB, f.Address, "the fill, two of settling, ten pairs")

	var made []*counting
	f, err = c.Figures(countingCandidate(&made))
	require.NoError(t, err)
	require.False(t, f.Named)
}

func TestOnlyTheChurnIsTimed(t *testing.T) {
	c := NewWorkload(program(t, "lognormal", func(p *workload.Params) { p.Live, p.Pairs = 10, 100 }), workload.MaxSize)
	var made []*counting
	p, err := c.Prepare(countingCandidate(&made))
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Equal(t, 30, made[0].allocs, "the fill, and two settling replacements of each block")
	for _, part := range []struct{ ask, want, allocs int }{{30, 30, 60}, {60, 60, 120}, {60, 10, 130}, {1, 0, 130}} {
		_, done, err := p.Churn(part.ask)
		require.NoError(t, err)
		require.Equal(t, part.want, done)
		require.Equal(t, part.allocs, made[0].allocs)
		require.Equal(t, part.allocs-10, made[0].frees)
	}
	require.NoError(t, p.Close())
}

func TestWithoutAFillTheSecondRunCounts(t *testing.T) {
	c := NewWorkload(program(t, "w2", func(p *workload.Params) { p.Steps = 1 }), workload.MaxSize)
	var made []*counting
	p, err := c.Prepare(countingCandidate(&made))
	require.NoError(t, err)
	require.Len(t, made, 2)
	require.Equal(t, c.Pairs, made[0].allocs, "a whole run before")
	require.Zero(t, made[1].allocs)
	_, done, err := p.Churn(c.Pairs)
	require.NoError(t, err)
	require.Equal(t, c.Pairs, done)
	require.Equal(t, *made[0], *made[1])
}

func TestRequestsAreCutDown(t *testing.T) {
	p := program(t, "w3", func(p *workload.Params) { p.Pairs = 100 })
	whole, cut := NewWorkload(p, workload.MaxSize), NewWorkload(p, device.MiB)
	require.Equal(t, p.Summary.PeakLive, whole.PeakLive)
	require.LessOrEqual(t, cut.PeakLive, 257*device.MiB)
	require.Greater(t, cut.PeakLive, 128*device.MiB)
	var made []*counting
	for _, c := range []*Workload{whole, cut} {
		_, err := c.Figures(countingCandidate(&made))
		require.NoError(t, err)
	}
	require.Greater(t, made[0].largest, device.MiB, "the program itself stays as it is")
	require.Equal(t, device.MiB, made[1].largest)
	require.Equal(t, made[0].frees, made[1].frees)
}

func TestPeakIsItsFirstOccurrence(t *testing.T) {
	for _, s := range workload.All() {
		p := program(t, s.Name, func(p *workload.Params) {
			p.Pairs, p.Steps = min(p.Pairs, 1000), min(p.Steps, 2)
		})
		c := NewWorkload(p, workload.MaxSize)
		require.Equal(t, p.Summary.PeakLive, c.PeakLive, s.Name)
		var live, highest device.Size
		sizes := map[uint32]device.Size{}
		at := -1
		require.NoError(t, c.each(func(i int, op workload.Op) error {
			require.Equal(t, op, c.at(i))
			live = live - sizes[op.Slot()] + op.Size()
			sizes[op.Slot()] = op.Size()
			if live > highest {
				highest, at = live, i
			}
			return nil
		}))
		require.Equal(t, at, c.peakAt, s.Name)
		require.Equal(t, highest, c.PeakLive)
	}
}

func TestMedianOfRounds(t *testing.T) {
	var odd, even Timing
	for _, ns := range []int64{900, 100, 500} {
		odd.add(ns, 100)
		even.add(ns, 100)
	}
	even.add(700, 100)
	odd.sum()
	even.sum()
	require.Equal(t, Timing{Median: 5, Min: 1, Max: 9, Rounds: []float64{9, 1, 5}}, odd)
	require.InDelta(t, 6, even.Median, 0)
	require.InDelta(t, 8./5, odd.Spread(), 0)
	require.Zero(t, Timing{}.Spread(), "a clock too coarse")
}

func TestEmptyLoopIsTimed(t *testing.T) {
	c := NewWorkload(program(t, "w1", func(p *workload.Params) { p.Live, p.Pairs = 10, 10 }), workload.MaxSize)
	require.GreaterOrEqual(t, c.loop(), int64(0))
}
