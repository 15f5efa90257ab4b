package propstest

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props"
)

// Workload is the workload of a benchmark: one of the shapes of package workload, with numbers of
// live blocks. Zero fields take the values of [Lognormal].
type Workload struct {
	Shape string      // entry of [workload.All]
	Name  string      // in the name of the benchmark; "" for the shape's own
	Live  []int       // numbers of live blocks; of a shape that has no such parameter, what its one number is
	Pairs int         // of the churn, which is repeated; 0 for the shape's own
	Least device.Size // smallest size in bytes, for a shape that has such a parameter
	Most  device.Size // bound of the sizes in bytes, likewise
}

// Lognormal is the workload of sizes with a median of 4 KiB and a sigma of 1.5, at most
// 16 MiB, with 1e3 to 1e6 live blocks.
var Lognormal = Workload{Shape: "lognormal", Live: []int{1_000, 10_000, 100_000, 1_000_000}}

// The yardsticks of docs/workloads.md. W1 has 1e3 to 1e5 live blocks.
var (
	W1 = Workload{Shape: "w1", Live: []int{1_000, 10_000, 100_000}}
	W2 = Workload{Shape: "w2", Live: []int{824}}
	W3 = Workload{Shape: "w3", Live: []int{257}}
)

// At returns the workload with other numbers of live blocks, for instance for a strategy
// whose calls cost more the more blocks are live.
func (w Workload) At(live ...int) Workload {
	w.Live = live
	return w
}

// Over returns the workload with this number of pairs in its churn. Each benchmark runs over all
// of them once, untimed, to measure the memory, so a slow strategy needs few.
func (w Workload) Over(pairs int) Workload {
	w.Pairs = pairs
	return w
}

// LogUniform returns a workload whose sizes have a uniform logarithm between two powers
// of two.
func LogUniform(least, most device.Size) Workload {
	return Workload{Shape: "loguniform", Name: fmt.Sprintf("%v-%v", least, most), Least: least, Most: most}
}

// Uniform returns a workload whose sizes are uniform between two.
func Uniform(least, most device.Size) Workload {
	return Workload{Shape: "uniform", Name: fmt.Sprintf("uniform-%v-%v", least, most), Least: least, Most: most}
}

// Bench measures a pair of a free and an allocation for every number of live blocks and subject:
// sub-benchmark strategy=NAME/workload=NAME/live=N. Its ns/op uses the clock of package bench: CPU
// time of the thread where available, which other workload on the machine affects much less than
// wall-clock time. It also reports heap and memory, without which a time means nothing:
//
//   - reserved/peak-live: most bytes held from the device over most bytes asked for
//   - address/peak-live: the same for the span from the lowest address of all regions to the
//     end of the highest block ever granted, the measure for strategies that take their
//     whole limit at once
//   - metadata-B/block: bytes of host memory for each live block, where the strategy knows
//
// These are the workloads and the figures of package bench, and the memory does not depend on how
// long the benchmark takes. The fill and the settle are not timed. No request is larger than
// the strategy grants.
//
// The subject's device is ignored; the benchmark runs on a simulated one without bound. A
// strategy whose own limit cannot hold the blocks is skipped at that number.
func (w Workload) Bench(b *testing.B, subjects ...props.Subject) {
	w = w.withDefaults()
	for _, live := range w.Live {
		program := sync.OnceValues(func() (*workload.Program, error) { return w.program(live) })
		for _, s := range subjects {
			var c *cell // of all runs of the benchmark: testing repeats one until it takes long enough
			b.Run(fmt.Sprintf("strategy=%s/workload=%s/live=%d", s.Name, w.Name, live), func(b *testing.B) {
				if c == nil {
					p, err := program()
					if err != nil {
						b.Fatal(err)
					}
					c = newCell(b, s, p)
				}
				c.bench(b)
			})
		}
	}
}

// Bench is [Workload.Bench] of the [Lognormal] workload.
func Bench(b *testing.B, subjects ...props.Subject) { Lognormal.Bench(b, subjects...) }

func (w Workload) withDefaults() Workload {
	w.Shape = cmp.Or(w.Shape, Lognormal.Shape)
	w.Name = cmp.Or(w.Name, w.Shape)
	if w.Live == nil {
		w.Live = Lognormal.Live
	}
	return w
}

func (w Workload) program(live int) (*workload.Program, error) {
	shape, err := workload.Lookup(w.Shape)
	if err != nil {
		return nil, err
	}
	p := shape.Default
	if p.Live != 0 {
		p.Live = live
	}
	if w.Pairs != 0 {
		p.Pairs = w.Pairs
	}
	if w.Most != 0 {
		p.Least, p.Most = w.Least, w.Most
	}
	made, err := shape.New(p)
	if err != nil {
		return nil, err
	}
	return made.Program(), nil
}

type cell struct {
	candidate bench.Candidate
	workload  *bench.Workload
	figures   bench.Figures
}

func newCell(b *testing.B, s props.Subject, p *workload.Program) *cell {
	a, err := s.New(newUnbounded(b, s))
	if err != nil {
		b.Fatal(err)
	}
	most, limit := power.MaxRequest(a), a.Stats().Limit
	if err := a.Close(); err != nil {
		b.Fatal(err)
	}
	c := &cell{
		candidate: bench.Candidate{Name: s.Name, New: s.New},
		workload:  bench.NewWorkload(p, most),
	}
	c.figures, err = c.workload.Figures(c.candidate)
	if errors.Is(err, alloc.ErrOutOfMemory) {
		b.Skipf("does not fit the strategy's own limit of %v: %v", limit, err)
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// bench times b.N pairs, over the churn again and again, and reports.
func (c *cell) bench(b *testing.B) {
	b.ReportAllocs()
	b.StopTimer()
	b.ResetTimer()
	var ns int64
	for left := b.N; left > 0; {
		p, err := c.workload.Prepare(c.candidate)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		took, done, err := p.Churn(left)
		b.StopTimer()
		if err = errors.Join(err, p.Close()); err != nil {
			b.Fatal(err)
		}
		ns, left = ns+took, left-done
	}
	b.ReportMetric(float64(ns)/float64(b.N), "ns/op")
	live := float64(c.workload.PeakLive)
	b.ReportMetric(float64(c.figures.Reserved)/live, "reserved/peak-live")
	b.ReportMetric(float64(c.figures.Address)/live, "address/peak-live")
	if n := c.figures.Metadata; n != nil {
		b.ReportMetric(float64(*n)/float64(c.workload.PeakBlocks), "metadata-B/block")
	}
}
