package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// The total work of the goroutines. Each does an equal share in slots of its own.
const (
	lockedLive  = 10_000
	lockedPairs = 800_000
)

// lockedCounts are the numbers of goroutines. 0 means one goroutine without the lock.
var lockedCounts = []int{0, 1, 2, 4, 8, 16}

// lockedFile is the raw file of the step.
type lockedFile struct {
	header
	Live  int         `json:"live"`  // blocks live, of all goroutines
	Pairs int         `json:"pairs"` // in each round, of all goroutines
	Runs  []lockedRun `json:"runs"`
}

// lockedRun is one strategy driven by some goroutines. Times are wall-clock times.
type lockedRun struct {
	Strategy   string `json:"strategy"`
	Goroutines int    `json:"goroutines"` // 0: one, and no lock
	bench.Timing
	Metadata float64 `json:"metadata_bytes_per_block"` // at the end of the last round
}

// takeLocked times wrap.Locked.
func takeLocked(o options) error {
	h, err := newHeader()
	if err != nil {
		return err
	}
	f := lockedFile{header: h, Live: lockedLive, Pairs: lockedPairs}
	work := map[int][]*workload.Program{}
	for _, n := range lockedCounts {
		if work[n], err = share(max(n, 1)); err != nil {
			return err
		}
		for _, s := range []string{"tlsf", "bfc"} {
			f.Runs = append(f.Runs, lockedRun{Strategy: s, Goroutines: n})
		}
	}
	for i := range o.rounds {
		fmt.Fprintf(o.log, "round %d of %d\n", i+1, o.rounds)
		for j := range f.Runs {
			r := &f.Runs[j]
			if err := r.round(work[r.Goroutines]); err != nil {
				return err
			}
		}
	}
	for i := range f.Runs {
		f.Runs[i].Timing = bench.TimingOf(f.Runs[i].Rounds)
	}
	return store(o, "locked.json", f)
}

// share returns the work of n goroutines: W1 each, of seeds of their own.
func share(n int) (all []*workload.Program, err error) {
	shape, err := workload.Lookup("w1")
	if err != nil {
		return nil, err
	}
	for i := range n {
		p := shape.Default
		p.Live, p.Pairs, p.Seed = lockedLive/n, lockedPairs/n, p.Seed+uint64(i)
		w, err := shape.New(p)
		if err != nil {
			return nil, err
		}
		all = append(all, w.Program())
	}
	return all, nil
}

// round runs the work once, over a new strategy.
func (r *lockedRun) round(work []*workload.Program) (err error) {
	var peak device.Size
	for _, p := range work {
		peak += p.Summary.PeakLive
	}
	s, err := build(r.Strategy, peak)
	if err != nil {
		return err
	}
	if r.Goroutines > 0 {
		if s, err = wrap.Locked(s); err != nil {
			return err
		}
	}
	drivers := make([]driver, len(work))
	for i, p := range work {
		drivers[i] = driver{s, make([]device.Addr, p.Summary.Slots)}
		if err := drivers[i].drive(p.Fill); err != nil {
			return err
		}
	}
	errs := make([]error, len(work))
	start := make(chan struct{})
	var done sync.WaitGroup
	for i, p := range work {
		done.Go(func() {
			<-start
			errs[i] = drivers[i].drive(p.Churn)
		})
	}
	runtime.GC()
	began := time.Now()
	close(start)
	done.Wait()
	r.Rounds = append(r.Rounds, float64(time.Since(began))/lockedPairs)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	n, err := power.MetadataBytes(s)
	if err != nil {
		return err
	}
	r.Metadata = float64(n) / lockedLive
	return s.Close()
}

// build returns a strategy over a simulated device with four times the bytes that are live, as
// harness/study/bench does.
func build(name string, peak device.Size) (alloc.Strategy, error) {
	setup, err := strategies.All().Lookup(name, nil)
	if err != nil {
		return nil, err
	}
	capacity := device.AlignUp(4*peak, device.GiB)
	dev, err := sim.New(sim.Config{Capacity: capacity})
	if err != nil {
		return nil, err
	}
	return setup.ForCapacity(capacity).New(dev)
}

// driver runs operations over slots of its own.
type driver struct {
	s    alloc.Strategy
	live []device.Addr // by slot
}

// drive runs operations until one is refused.
func (d driver) drive(ops []workload.Op) error {
	for _, op := range ops {
		size := op.Size()
		if size == 0 {
			if err := d.s.Free(d.live[op.Slot()]); err != nil {
				return err
			}
			continue
		}
		b, err := d.s.Alloc(alloc.Request{Size: size})
		if err != nil {
			return err
		}
		d.live[op.Slot()] = b.Addr
	}
	return nil
}
