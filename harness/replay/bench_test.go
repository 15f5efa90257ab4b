package replay_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// bareOp is what an allocator has to be told of an event: a request of size bytes, or the
// free of what is in the slot.
type bareOp struct {
	size   device.Size
	slot   uint32
	tag    uint32
	stream uint32
	free   bool
}

// bareOps returns the allocations and frees of a trace.
func bareOps(t *trace.Trace) (ops []bareOp) {
	for _, e := range t.Events {
		switch e.Kind {
		case trace.Alloc:
			ops = append(ops, bareOp{e.Size, e.Slot, e.Tag, uint32(e.Stream), false})
		case trace.Free:
			ops = append(ops, bareOp{slot: e.Slot, free: true})
		}
	}
	return ops
}

// bare is the least that can be done to run operations through an allocator.
func bare(s alloc.Allocator, ops []bareOp, live []device.Addr) error {
	for _, op := range ops {
		if op.free {
			if err := s.Free(live[op.slot]); err != nil {
				return err
			}
			continue
		}
		b, err := s.Alloc(alloc.Request{Size: op.size, Stream: device.Stream(op.stream), Tag: uint64(op.tag)})
		if err != nil {
			return err
		}
		live[op.slot] = b.Addr
	}
	return nil
}

// benched are the traces of the benchmark: a recorded one, where every allocation has an id of
// its own, and a yardstick whose ids are used again.
func benched(b *testing.B) []*trace.Trace {
	short, err := workload.OpenRecording("meta_llama7b_lora")
	if err != nil {
		b.Fatal(err)
	}
	shape, err := workload.Lookup("w1")
	if err != nil {
		b.Fatal(err)
	}
	p := shape.Default
	p.Live = 10_000
	w, err := shape.New(p)
	if err != nil {
		b.Fatal(err)
	}
	long, err := w.Trace()
	if err != nil {
		b.Fatal(err)
	}
	return []*trace.Trace{short, long}
}

// BenchmarkReplay times a replay with every figure, and one with latencies too, beside a bare
// loop over the same operations. The three take turns, each with a new strategy, so that their
// ratios mean something on a machine that others use too.
func BenchmarkReplay(b *testing.B) {
	for _, t := range benched(b) {
		ops := bareOps(t)
		p, err := replay.Prepare(b.Context(), t)
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"tlsf", "bfc"} {
			setup, err := strategies.All().Lookup(name, nil)
			if err != nil {
				b.Fatal(err)
			}
			c := subject{t: p, slots: t.Slots, ops: ops, setup: setup.ForCapacity(device.AlignUp(4*p.LowerBound(), device.GiB))}
			b.Run("strategy="+name+"/trace="+t.Header.Name, c.bench)
		}
	}
}

// subject is one strategy on one trace.
type subject struct {
	t     *replay.Prepared
	slots int
	ops   []bareOp
	setup setting.Setup
}

// bench runs the rounds and reports medians of CPU time per operation.
func (c subject) bench(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var loops, replays, latencies []float64
	for b.Loop() {
		loops = append(loops, c.time(b, c.bare))
		replays = append(replays, c.time(b, c.replay(replay.Options{Figures: true})))
		latencies = append(latencies, c.time(b, c.replay(replay.Options{Figures: true, Latency: true})))
	}
	loop, whole, slow := median(loops), median(replays), median(latencies)
	b.ReportMetric(loop, "bare-ns/op")
	b.ReportMetric(whole, "replay-ns/op")
	b.ReportMetric(slow, "latency-ns/op")
	b.ReportMetric(whole/loop, "replay/bare")
	b.ReportMetric(slow/loop, "latency/bare")
	b.ReportMetric(0, "ns/op") // three different things together
}

// time returns the CPU time of f per operation. What f returns is run afterwards.
func (c subject) time(b *testing.B, f func() (func() error, error)) float64 {
	runtime.GC()
	start := replay.ThreadTime()
	after, err := f()
	ns := replay.ThreadTime() - start
	if err == nil {
		err = after()
	}
	if err != nil {
		b.Fatal(err)
	}
	return float64(ns) / float64(len(c.ops))
}

// bare builds the strategy and runs the bare loop.
func (c subject) bare() (func() error, error) {
	dev, err := sim.New(sim.Config{})
	if err != nil {
		return nil, err
	}
	s, err := c.setup.New(dev)
	if err != nil {
		return nil, err
	}
	return s.Close, bare(s, c.ops, make([]device.Addr, c.slots))
}

// replay returns the same as a replay, which closes the strategy itself.
func (c subject) replay(o replay.Options) func() (func() error, error) {
	return func() (func() error, error) {
		dev, err := sim.New(sim.Config{})
		if err != nil {
			return nil, err
		}
		_, err = c.t.Run(c.setup, dev, o)
		return func() error { return nil }, err
	}
}

// median returns the middle value, the mean of the middle two of an even number.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
