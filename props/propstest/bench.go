package propstest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/workload"
	"github.com/vramyard/vramyard/props"
)

// Workload is a steady state: a number of live blocks, of which a random one is freed and
// another allocated, over and over. Zero fields mean those of the lognormal workload.
type Workload struct {
	Name string // in the name of the benchmark
	Live []int  // numbers of live blocks
	// Size draws the bytes of a request. No request is larger than the strategy grants.
	Size workload.Sizes
}

// Lognormal is the workload of sizes with a median of 4 KiB and a sigma of 1.5, at most
// 16 MiB, with 1e3 to 1e6 live blocks.
var Lognormal = Workload{Name: "lognormal", Live: []int{1_000, 10_000, 100_000, 1_000_000}, Size: workload.Lognormal()}

// At returns the workload with other numbers of live blocks, for instance for a strategy
// whose calls cost more the more blocks are live.
func (w Workload) At(live ...int) Workload {
	w.Live = live
	return w
}

// LogUniform returns a workload whose sizes have a uniform logarithm between two powers
// of two.
func LogUniform(least, most device.Size) Workload {
	return Workload{Name: fmt.Sprintf("%v-%v", least, most), Size: workload.LogUniform(least, most)}
}

// Uniform returns a workload whose sizes are uniform between two.
func Uniform(least, most device.Size) Workload {
	return Workload{Name: fmt.Sprintf("uniform-%v-%v", least, most), Size: workload.Uniform(least, most)}
}

// Bench measures a pair of Free and Alloc of a random slot for every subject and number
// of live blocks: sub-benchmark strategy=NAME/workload=NAME/live=N. Besides time and
// heap it reports memory, without which a time means nothing:
//
//   - reserved/peak-live: most bytes held from the device over most bytes asked for
//   - address/peak-live: the same for the span from the device's lowest address to the end
//     of the highest block ever granted, which tells about strategies that take their
//     whole limit at once
//   - metadata-B/block: bytes of host memory for each live block, where the strategy knows
//
// The subject's device is ignored; the benchmark runs on a simulated one without bound. A
// strategy whose own limit cannot hold the blocks is skipped at that number.
func (w Workload) Bench(b *testing.B, subjects ...props.Subject) {
	if w.Live == nil {
		w.Live = Lognormal.Live
	}
	if w.Size == nil {
		w.Name, w.Size = Lognormal.Name, Lognormal.Size
	}
	for _, s := range subjects {
		for _, live := range w.Live {
			b.Run(fmt.Sprintf("strategy=%s/workload=%s/live=%d", s.Name, w.Name, live), func(b *testing.B) {
				benchSteady(b, s, live, w.Size)
			})
		}
	}
}

// Bench is [Workload.Bench] of the [Lognormal] workload.
func Bench(b *testing.B, subjects ...props.Subject) { Lognormal.Bench(b, subjects...) }

// benchSteady is one cell of Bench.
func benchSteady(b *testing.B, s props.Subject, live int, size workload.Sizes) {
	a, err := s.New(newUnbounded(b))
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close() // the device is thrown away with it
	w := newSteady(a, live, size)
	if err := w.warm(); errors.Is(err, alloc.ErrOutOfMemory) {
		b.Skipf("%d blocks do not fit the strategy's own limit of %v", live, a.Stats().Limit)
	} else if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if err := w.step(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	st := a.Stats()
	peak := float64(max(st.PeakRequested, 1))
	b.ReportMetric(float64(st.PeakReserved)/peak, "reserved/peak-live")
	b.ReportMetric(float64(w.top.Sub(sim.Base))/peak, "address/peak-live")
	if n, err := alloc.MetadataBytes(a); err == nil {
		b.ReportMetric(float64(n)/float64(live), "metadata-B/block")
	}
}

// AllocsZero checks invariant I37: a pair of Free and Alloc takes nothing from the Go heap
// once the strategy is warm, and neither does a walk.
func AllocsZero(t testing.TB, s props.Subject) {
	t.Helper()
	a, w := newWarm(t, s)
	defer a.Close() // the device is thrown away with it
	var failed error
	if n := testing.AllocsPerRun(4096, func() {
		if err := w.step(); err != nil {
			failed = err
		}
	}); n != 0 {
		t.Errorf("invariant %v (%s): a pair of Free and Alloc takes %v allocations from the heap, want 0",
			props.IWarm, props.IWarm.Name(), n)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	var bytes device.Size
	count := func(c alloc.Chunk) bool {
		bytes += c.Size
		return true
	}
	if n := testing.AllocsPerRun(100, func() { a.Walk(count) }); n > 1 {
		t.Errorf("invariant %v (%s): a walk takes %v allocations from the heap, want at most 1",
			props.IWarm, props.IWarm.Name(), n)
	}
}

// newWarm builds the subject and warms it with as many small blocks as its own limit holds,
// up to 64.
func newWarm(t testing.TB, s props.Subject) (alloc.Strategy, *steady) {
	for live := 64; ; live /= 2 {
		a, err := s.New(newUnbounded(t))
		if err != nil {
			t.Fatal(err)
		}
		w := newSteady(a, live, Lognormal.Size)
		w.most = min(w.most, 64*device.KiB)
		if limit := a.Stats().Limit; limit != 0 {
			w.most = min(w.most, limit) // a ceiling that is not stated
		}
		if err = w.warm(); err == nil {
			return a, w
		}
		_ = a.Close() // the device is thrown away with it
		if live == 1 || !errors.Is(err, alloc.ErrOutOfMemory) {
			t.Fatal(err)
		}
	}
}

// newUnbounded returns a simulated device without a capacity.
func newUnbounded(t testing.TB) device.Device {
	dev, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// steady keeps a number of blocks live: it frees a random one and asks for another.
type steady struct {
	alloc.Strategy
	draw  workload.Sizes
	rng   *workload.Rand
	slots []device.Addr
	top   device.Addr // end of the highest block granted
	most  device.Size // no request is larger
}

// newSteady returns the workload with a fixed seed.
func newSteady(a alloc.Strategy, live int, draw workload.Sizes) *steady {
	return &steady{
		Strategy: a, draw: draw, rng: workload.NewRand(42), slots: make([]device.Addr, live), most: alloc.MaxRequest(a),
	}
}

// leastWarm is the fewest pairs before anything is measured: with few blocks live, replacing
// each of them twice does not reach every table that still has to grow.
const leastWarm = 8192

// warm fills the slots and churns until placement has settled.
func (w *steady) warm() error {
	for i := range w.slots {
		b, err := w.Alloc(alloc.Request{Size: w.size()})
		if err != nil {
			return err
		}
		w.slots[i] = b.Addr
		w.top = max(w.top, b.Addr.Add(b.Size))
	}
	for range max(workload.Settle(len(w.slots)), leastWarm) {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// step frees the block of a random slot and puts another in its place.
func (w *steady) step() error {
	slot := &w.slots[w.rng.Below(uint64(len(w.slots)))]
	if err := w.Free(*slot); err != nil {
		return err
	}
	b, err := w.Alloc(alloc.Request{Size: w.size()})
	*slot = b.Addr
	w.top = max(w.top, b.Addr.Add(b.Size))
	return err
}

// size draws a size that the strategy grants.
func (w *steady) size() device.Size { return min(w.draw(w.rng), w.most) }
