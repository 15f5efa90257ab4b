package propstest

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
)

// Workload is a steady state: a number of live blocks, of which a random one is freed and
// another allocated, over and over. Zero fields mean those of the lognormal workload.
type Workload struct {
	Name string // in the name of the benchmark
	Live []int  // numbers of live blocks
	// Size draws the bytes of a request from next, which returns 64 random bits. No
	// request is larger than the strategy grants.
	Size func(next func() uint64) device.Size
}

// Lognormal is the workload of sizes with a median of 4 KiB and a sigma of 1.5, at most
// 16 MiB, with 1e3 to 1e6 live blocks.
var Lognormal = Workload{Name: "lognormal", Live: []int{1_000, 10_000, 100_000, 1_000_000}, Size: lognormal}

// At returns the workload with other numbers of live blocks, for instance for a strategy
// whose calls cost more the more blocks are live.
func (w Workload) At(live ...int) Workload {
	w.Live = live
	return w
}

// LogUniform returns a workload whose sizes have a uniform logarithm between two powers
// of two.
func LogUniform(least, most device.Size) Workload {
	low, high := bits.Len64(uint64(least))-1, bits.Len64(uint64(most))-1
	return Workload{
		Name: fmt.Sprintf("%v-%v", least, most),
		Size: func(next func() uint64) device.Size {
			return exp2(uint64(low)<<16 + next()>>32*uint64(high-low)<<16>>32)
		},
	}
}

// Uniform returns a workload whose sizes are uniform between two.
func Uniform(least, most device.Size) Workload {
	return Workload{
		Name: fmt.Sprintf("uniform-%v-%v", least, most),
		Size: func(next func() uint64) device.Size {
			return least + device.Size(next()>>32*uint64(most-least+1)>>32)
		},
	}
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
func benchSteady(b *testing.B, s props.Subject, live int, size func(func() uint64) device.Size) {
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
		w := newSteady(a, live, lognormal)
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
	draw  func() device.Size
	slots []device.Addr
	top   device.Addr // end of the highest block granted
	most  device.Size // no request is larger
	state uint64
}

// largestSize bounds the sizes of the workload: the lognormal's tail has no end.
const largestSize = 16 * device.MiB

// newSteady returns the workload with a fixed seed.
func newSteady(a alloc.Strategy, live int, draw func(func() uint64) device.Size) *steady {
	most := min(alloc.MaxRequest(a), largestSize)
	w := &steady{Strategy: a, slots: make([]device.Addr, live), most: most, state: 42}
	next := w.next // made once, because making it takes memory from the heap
	w.draw = func() device.Size { return draw(next) }
	return w
}

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
	for range max(min(2*len(w.slots), 400_000), 8192) {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// step frees the block of a random slot and puts another in its place.
func (w *steady) step() error {
	slot := &w.slots[w.below(uint64(len(w.slots)))]
	if err := w.Free(*slot); err != nil {
		return err
	}
	b, err := w.Alloc(alloc.Request{Size: w.size()})
	*slot = b.Addr
	w.top = max(w.top, b.Addr.Add(b.Size))
	return err
}

// next returns the next number of splitmix64.
func (w *steady) next() uint64 {
	w.state += 0x9e3779b97f4a7c15
	z := w.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number below n.
func (w *steady) below(n uint64) uint64 { return (w.next() >> 32) * n >> 32 }

// size draws a size that the strategy grants.
func (w *steady) size() device.Size { return min(w.draw(), w.most) }

// lognormal draws a size with whole numbers only, so that every machine draws the same. The
// sum of twelve 16-bit lanes is nearly normal with a deviation of 65536; its multiple by
// 1.5/ln 2 is a base-2 logarithm with 16 fractional bits.
func lognormal(next func() uint64) device.Size {
	const (
		median = 12 << 16       // log2 of 4 KiB
		mean   = 12 * 65535 / 2 // of the sum of the lanes
		sigma  = 141_822        // 1.5/ln 2 with 16 fractional bits
		least  = 1 << 16        // log2 of 2 B
		most   = 40 << 16       // log2 of 1 TiB
	)
	var sum int64
	for range 3 {
		for n := next(); n != 0; n >>= 16 {
			sum += int64(n & 0xffff)
		}
	}
	return exp2(uint64(min(max(median+((sum-mean)*sigma>>16), least), most)))
}

// exp2 returns the power of two of x, which has 16 fractional bits, interpolated between
// whole powers.
func exp2(x uint64) device.Size {
	k, f := x>>16, x&0xffff
	return device.Size(1<<k + f<<k>>16)
}
