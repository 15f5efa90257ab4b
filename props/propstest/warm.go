package propstest

import (
	"errors"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props"
)

// AllocsZero checks invariant I37: a pair of Free and Alloc takes nothing from the Go heap
// once the strategy is warm, and neither does a walk. With streams that holds for the pair also
// where a stream is recorded for the block, and for the poll that ends the wait.
func AllocsZero(t testing.TB, s props.Subject) {
	t.Helper()
	guarded(t, func(beat func()) { allocsZero(t, s, beat) })
}

// guarded calls f in a goroutine of its own. A panic of f fails the test with its stack, and so
// does f if it hangs: if it does not call beat for as long as [props.Guarded] waits.
func guarded(t testing.TB, f func(beat func())) {
	t.Helper()
	err := props.Guarded(0, func(beat func()) error {
		f(beat)
		return nil
	})
	if v, ok := errors.AsType[*props.Violation](err); ok {
		t.Fatalf("%v\n%s", v, v.Stack)
	}
}

func allocsZero(t testing.TB, s props.Subject, beat func()) {
	t.Helper()
	a, w := newWarm(t, s, beat)
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
	if power.Has(a, power.PowerStreamRecorder) && w.line != nil {
		if failed == nil {
			failed = w.warmStreams()
		}
		if n := testing.AllocsPerRun(4096, func() {
			if err := w.streamStep(); err != nil {
				failed = err
			}
		}); n != 0 {
			t.Errorf("invariant %v (%s): a pair of Free and Alloc on streams takes %v allocations from the heap, want 0",
				props.IWarm, props.IWarm.Name(), n)
		}
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
func newWarm(t testing.TB, s props.Subject, beat func()) (alloc.Strategy, *steady) {
	for live := 64; ; live /= 2 {
		dev := newUnbounded(t, s)
		a, err := s.New(dev)
		if err != nil {
			t.Fatal(err)
		}
		w := newSteady(a, live, workload.Lognormal(), beat)
		w.line, _ = device.TimelineOf(dev)
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

// newUnbounded returns a simulated device that does not run out, with pages as the subject has
// them. It has a capacity, because strategies may be asked for a share of that.
func newUnbounded(t testing.TB, s props.Subject) device.Device {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: 1024 * device.TiB, Granularity: s.Device.Granularity})
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// steady keeps a number of blocks live: it frees a random one and allocates another.
type steady struct {
	alloc.Strategy
	draw  workload.Sizes
	rng   *workload.Rand
	slots []device.Addr
	most  device.Size // no request is larger
	line  device.Timeline
	steps int    // on streams
	beat  func() // called before each pair
}

func newSteady(a alloc.Strategy, live int, draw workload.Sizes, beat func()) *steady {
	return &steady{
		Strategy: a, draw: draw, rng: workload.NewRand(42), slots: make([]device.Addr, live), most: power.MaxRequest(a),
		beat: beat,
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
	w.beat()
	slot := &w.slots[w.rng.Below(uint64(len(w.slots)))]
	if err := w.Free(*slot); err != nil {
		return err
	}
	b, err := w.Alloc(alloc.Request{Size: w.size()})
	*slot = b.Addr
	return err
}

func (w *steady) size() device.Size { return min(w.draw(w.rng), w.most) }

// warmStreams churns on streams until placement has settled.
func (w *steady) warmStreams() error {
	for range leastWarm {
		if err := w.streamStep(); err != nil {
			return err
		}
	}
	return nil
}

// streamStep is step on two streams. Another stream uses every fourth block, and now and then
// all streams finish and the strategy looks for it.
func (w *steady) streamStep() error {
	w.beat()
	slot := &w.slots[w.rng.Below(uint64(len(w.slots)))]
	w.steps++
	if w.steps%4 == 0 {
		if err := power.RecordStream(w.Strategy, *slot, device.Stream(2+w.steps/4%3)); err != nil {
			return err
		}
	}
	if err := w.Free(*slot); err != nil {
		return err
	}
	if w.steps%16 == 0 {
		for s := range device.Stream(5) {
			if err := w.line.Drain(s); err != nil {
				return err
			}
		}
		if _, err := power.Poll(w.Strategy); err != nil && !errors.Is(err, alloc.ErrUnsupported) {
			return err
		}
	}
	b, err := w.Alloc(alloc.Request{Size: w.size(), Stream: device.Stream(w.steps / 64 % 2)})
	*slot = b.Addr
	return err
}
