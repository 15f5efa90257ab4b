package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// live are the numbers of live blocks that figures are taken at.
var live = []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000}

// entry is a strategy of a comparison.
type entry struct {
	name string
	most int // live blocks beyond which it is left out, see comparisons
}

// comparison is strategies on one workload.
type comparison struct {
	name        string // of the raw file
	shape       string
	least, most device.Size // of the sizes, for a mix
	entries     []entry     // ratios are to the first
}

func (c comparison) file() string { return "times-" + c.name + ".json" }

// comparisons returns what is timed. The bounds leave out what would take minutes a round: a
// strategy that gives large blocks regions of their own holds millions of them at the largest
// number of live blocks.
func comparisons() []comparison {
	const million, all = 1_000_000, 10_000_000
	return []comparison{
		{"w1", "w1", 0, 0, []entry{{"tlsf", all}, {"bfc", all}, {"bestfit", all}, {"buddy", million}, {"slab", million},
			{"slabbuddy", million}, {"caching", million}, {"stitch", million}, {"vmm", million}, {"async", million},
			{"recall", million}}},
		{"buddy", "loguniform", 16 * device.KiB, device.MiB, []entry{{"tlsf", all}, {"buddy", million}}},
		{"slab", "uniform", 1, 16 * device.KiB, []entry{{"tlsf", all}, {"slab", all}}},
		{"slabbuddy", "loguniform", 256, device.MiB, []entry{{"tlsf", all}, {"slabbuddy", all}}},
	}
}

// timesFile is the raw file of a comparison: a report for each number of live blocks.
type timesFile struct {
	header
	Reports []*bench.Report `json:"reports"`
}

func takeTimes(o options) error {
	h, err := newHeader()
	if err != nil {
		return err
	}
	for _, c := range comparisons() {
		f := timesFile{header: h}
		for _, n := range live {
			setups, err := c.setups(n)
			if err != nil {
				return err
			}
			if n > o.most || len(setups) < 2 {
				break
			}
			w, err := c.workload(n)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.log, "%s: %v\n", c.name, w)
			r, err := bench.Measure(context.Background(), []workload.Workload{w}, setups,
				bench.Options{Rounds: roundsFor(n, o.rounds)})
			if err != nil {
				return err
			}
			f.Reports = append(f.Reports, r)
		}
		if err := store(o, c.file(), f); err != nil {
			return err
		}
	}
	return nil
}

// The work of the goroutines of the step locked, all together.
const (
	lockedLive  = 10_000
	lockedPairs = 800_000
)

// lockedThreads are the numbers of goroutines that call one strategy.
var lockedThreads = []int{1, 2, 4, 8, 16}

// takeLocked times strategies that several goroutines call, as vramyard bench --threads does.
func takeLocked(o options) error {
	h, err := newHeader()
	if err != nil {
		return err
	}
	c := comparison{shape: "w1", entries: []entry{{"tlsf", lockedLive}, {"bfc", lockedLive}}}
	setups, err := c.setups(lockedLive)
	if err != nil {
		return err
	}
	w, err := c.workload(lockedLive)
	if err != nil {
		return err
	}
	p := w.Params()
	p.Pairs = lockedPairs
	if w, err = w.Shape().New(p); err != nil {
		return err
	}
	r, err := bench.Measure(context.Background(), []workload.Workload{w}, setups,
		bench.Options{Rounds: o.rounds, Threads: lockedThreads})
	if err != nil {
		return err
	}
	return store(o, "locked.json", timesFile{header: h, Reports: []*bench.Report{r}})
}

// roundsFor returns the number of rounds with n live blocks. With many, the untimed filling
// dominates.
func roundsFor(n, rounds int) int {
	if n >= 10_000_000 {
		return max(rounds/3, 1)
	}
	return rounds
}

// setups returns the strategies that take part with n live blocks.
func (c comparison) setups(n int) (all []setting.Setup, err error) {
	for _, e := range c.entries {
		if n > e.most {
			continue
		}
		s, err := strategies.All().Lookup(e.name, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (c comparison) workload(n int) (workload.Workload, error) {
	shape, err := workload.Lookup(c.shape)
	if err != nil {
		return workload.Workload{}, err
	}
	p := shape.Default
	p.Live = n
	if c.most != 0 {
		p.Least, p.Most = c.least, c.most
	}
	return shape.New(p)
}

func (c comparison) title() string {
	if c.most == 0 {
		return strings.ToUpper(c.shape)
	}
	return fmt.Sprintf("%s, %v to %v", c.shape, c.least, c.most)
}

// run returns the figures of a strategy with n live blocks, or nil.
func (f *timesFile) run(strategy string, n int) *bench.Run {
	for _, r := range f.Reports {
		for i := range r.Runs {
			if r.Runs[i].Strategy == strategy && r.Runs[i].Params.Live == n {
				return &r.Runs[i]
			}
		}
	}
	return nil
}

// loop returns the empty loop with n live blocks, or nil.
func (f *timesFile) loop(n int) *bench.Loop {
	for _, r := range f.Reports {
		for i := range r.Loops {
			if r.Loops[i].Params.Live == n {
				return &r.Loops[i]
			}
		}
	}
	return nil
}
