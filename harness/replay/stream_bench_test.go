package replay_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/strategies"
)

// BenchmarkStream replays a Parquet file while it decodes it, beside the parts of that work:
// decoding alone, and the replay of the trace in memory. Each figure is the least CPU time of an
// event in all rounds, which take turns.
func BenchmarkStream(b *testing.B) {
	long := benched(b)[1]
	var out bytes.Buffer
	if err := parquet.Write(&out, long); err != nil {
		b.Fatal(err)
	}
	file, err := parquet.Open(bytes.NewReader(out.Bytes()), int64(out.Len()), "w1.parquet", budget.New(1<<30))
	if err != nil {
		b.Fatal(err)
	}
	setup, err := strategies.All().Lookup("tlsf", nil)
	if err != nil {
		b.Fatal(err)
	}
	run := func(src trace.Source) func() error {
		p, err := replay.Prepare(b.Context(), src)
		if err != nil {
			b.Fatal(err)
		}
		setup := setup.ForCapacity(device.AlignUp(4*p.LowerBound(), device.GiB))
		return func() error {
			dev, err := sim.New(sim.Config{})
			if err != nil {
				return err
			}
			_, err = p.Run(setup, dev, replay.Options{ByRef: true})
			return err
		}
	}
	parts := []struct {
		name string
		do   func() error
	}{
		{"stream-ns/event", run(file)},
		{"decode-ns/event", func() error { return file.Batches(func([]trace.Event) error { return nil }) }},
		{"memory-ns/event", run(long)},
	}
	least := make([]float64, len(parts))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		for i, p := range parts {
			start := replay.ThreadTime()
			if err := p.do(); err != nil {
				b.Fatal(err)
			}
			if ns := float64(replay.ThreadTime()-start) / float64(len(long.Events)); least[i] == 0 || ns < least[i] {
				least[i] = ns
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, p := range parts {
		b.ReportMetric(least[i], p.name)
	}
}
