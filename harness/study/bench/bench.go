package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// Schema names the form of [Report] in JSON.
const Schema = "vramyard-bench/1"

// Options of a benchmark.
type Options struct {
	Rounds   int                   // interleaved runs of each strategy; at least 1
	Capacity device.Size           // of the device; 0 is an ample one for each workload
	Device   replay.Target         // device, except for its capacity
	Threads  []int                 // numbers of concurrent threads to time in addition; nil for none
	Arena    bool                  // search the smallest arena too, which takes a dozen runs of each strategy
	Progress func(done, known int) // called between two runs with the number of finished runs; nil for none
	Share    func(done float64)    // called with the estimated fraction of the work done, 0 to 1; nil for none
}

// Report is the outcome of a benchmark. Runs and loops stand in the order of the workloads.
type Report struct {
	Schema     string           `json:"schema"`     // the constant Schema
	Provenance provenance.Build `json:"provenance"` // of the program
	Clock      string           `json:"clock"`      // clock of the times, by [replay.ClockName]; latencies use the wall clock
	Machine    Machine          `json:"machine"`    // machine of the measurement
	Rounds     int              `json:"rounds"`     // interleaved runs of each strategy
	Device     replay.Target    `json:"device"`     // device; its capacity is 0 if each workload has its own
	Loops      []Loop           `json:"loops"`      // the empty loop, one for each workload
	Runs       []Run            `json:"runs"`       // by workload, then by strategy
	// runs of several threads, by workload, number of threads, strategy and locking
	Threads []ThreadRun `json:"threads,omitempty"`
}

// Timing is the time of a pair of a free and an allocation in nanoseconds, over all rounds.
type Timing struct {
	Median float64   `json:"ns_per_pair_median"` // of the rounds
	Min    float64   `json:"ns_per_pair_min"`    // of the shortest round
	Max    float64   `json:"ns_per_pair_max"`    // of the longest
	Rounds []float64 `json:"ns_per_pair_rounds"` // in their order
}

// Spread returns the distance of the longest round from the shortest, as a share of the median.
func (t Timing) Spread() float64 { return ratio(t.Max-t.Min, t.Median) }

// Load is a timed workload. Sizes are bytes.
type Load struct {
	Workload string          `json:"workload"`               // name of the shape
	Params   workload.Params `json:"parameters" flat:"text"` // of the workload
	Hash     workload.Hash   `json:"workload_hash"`          // of its operations
	Live     int             `json:"live"`                   // most blocks live at once
	Pairs    int             `json:"pairs"`                  // that were timed in each round
	PeakLive device.Size     `json:"peak_live_bytes"`        // most bytes live at once
	Device   device.Size     `json:"device_bytes"`           // capacity of the device
}

// Loop is the time of the timed loop without a strategy. Every other time includes it.
type Loop struct {
	Load
	Timing
}

// Run holds the figures of one strategy on one workload. Sizes are bytes. docs/metrics.md
// defines each figure.
type Run struct {
	Strategy string          `json:"strategy"` // name and preset
	Config   json.RawMessage `json:"config"`   // fitted to the device
	// reserves the whole device at once, so reserved bytes are independent of the demand
	Preallocates bool `json:"preallocates"`
	// others are compared with the strategy; no verdict names it the winner
	Baseline bool `json:"is_baseline"`
	// Free takes the strategy's own name of a block, where others take its address: see [Named]
	Named bool `json:"named"`
	// times are of the strategy's own clock, which excludes the communication with it
	SelfTimed bool `json:"self_timed,omitempty"`
	Load
	Timing
	ByRef   *Timing `json:"ns_per_pair_by_reference,omitempty"` // freed by reference, where the strategy can
	Ratio   float64 `json:"ratio_to_first"`                     // median / median of the first strategy
	Latency Latency `json:"latency"`                            // of single operations

	// highest address granted - lowest address of all regions, / peak live bytes
	AddressRatio  float64     `json:"address_ratio"`
	ReservedRatio float64     `json:"reserved_ratio"`      // peak of the bytes held / peak live bytes
	ArenaRatio    *float64    `json:"arena_ratio"`         // smallest arena / peak live bytes; null: not asked for
	Address       device.Size `json:"address_bytes"`       // highest address granted - lowest address of all regions
	Reserved      device.Size `json:"peak_reserved_bytes"` // most held from the device
	// smallest device on which every request is granted; null: not asked for
	Arena *device.Size `json:"smallest_arena_bytes"`

	// host memory of the strategy when live bytes first were highest; null: not known
	Metadata         *device.Size `json:"metadata_bytes"`
	MetadataPerBlock *float64     `json:"metadata_bytes_per_block"` // the same / most live blocks
	// growth of the Go heap until the churn / most live blocks
	HeapPerBlock   float64 `json:"heap_bytes_per_block"`
	MallocsPerPair float64 `json:"heap_allocs_per_pair"` // objects taken from the Go heap by the churn / pairs
}

var (
	errRounds  = errors.New("bench: want at least one round")
	errNothing = errors.New("bench: want at least one workload and one strategy")
)

// Measure times each strategy on each workload. Every request must be granted: otherwise the error
// is a [*Refusal]. If ctx ends, the error is the context's and the report has the finished
// workloads; a run that has begun is completed.
func Measure(ctx context.Context, workloads []workload.Workload, setups []setting.Setup, o Options) (*Report, error) {
	switch {
	case o.Rounds < 1:
		return nil, errRounds
	case len(workloads) == 0 || len(setups) == 0:
		return nil, errNothing
	}
	r := &Report{
		Schema: Schema, Provenance: provenance.Read(), Clock: replay.ClockName(), Machine: ThisMachine(), Rounds: o.Rounds,
		Device: o.Device.Used(o.Capacity),
	}
	each := o.Rounds + 2 // the figures and the latencies have runs of their own
	if o.Arena {
		each++
	}
	each += len(o.Threads)
	steps := &counter{known: len(workloads) * len(setups) * each, report: o.Progress, share: o.Share, ctx: ctx}
	for _, w := range workloads {
		steps.all += float64(w.Events()) * float64(len(setups)*each)
	}
	defer pprof.SetGoroutineLabels(ctx)
	for _, w := range workloads {
		steps.events = float64(w.Events())
		m := newMatch(w, setups, o, steps)
		if err := m.play(); err != nil && errors.Is(err, ctx.Err()) {
			return r, err
		} else if err != nil {
			return nil, err
		}
		r.Loops, r.Runs = append(r.Loops, m.loop), append(r.Runs, m.runs...)
		for _, n := range o.Threads {
			runs, err := m.threaded(w, setups, n)
			if r.Threads = append(r.Threads, runs...); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// counter counts runs for [Options.Progress], and their events for [Options.Share].
type counter struct {
	done, known       int
	events, over, all float64 // of a run of the current workload, of finished runs, of all
	report            func(done, known int)
	share             func(done float64)
	ctx               context.Context
}

// step counts a run. It fails if ctx has ended, except after the last run.
func (c *counter) step() error {
	if c.done++; c.report != nil {
		c.report(c.done, c.known)
	}
	if c.over += c.events; c.share != nil {
		c.share(min(c.over/c.all, 1))
	}
	if c.done < c.known {
		return c.ctx.Err()
	}
	return nil
}

// match is the measurement of all strategies on one workload.
type match struct {
	workload   *Workload
	setups     []setting.Setup // fitted to the device
	candidates []Candidate
	o          Options
	steps      *counter
	loop       Loop
	runs       []Run
}

func newMatch(w workload.Workload, setups []setting.Setup, o Options, steps *counter) *match {
	p := w.Program()
	load := Load{
		Workload: w.Shape().Name, Params: w.Params(), Hash: p.Summary.Hash, Live: p.Summary.PeakBlocks,
		Pairs: p.Summary.Pairs, PeakLive: p.Summary.PeakLive, Device: o.Capacity,
	}
	if load.Device == 0 {
		load.Device = o.Device.Ample(ample(load.PeakLive))
	}
	m := &match{workload: NewWorkload(p, workload.MaxSize), o: o, steps: steps, loop: Loop{Load: load}}
	for _, s := range setups {
		s = s.ForCapacity(load.Device)
		m.setups = append(m.setups, s)
		m.candidates = append(m.candidates, candidate(s, load.Device, o.Device))
		m.runs = append(m.runs, Run{Strategy: s.Name, Preallocates: s.Preallocates, Baseline: s.Baseline, Load: load})
	}
	return m
}

// ample returns a capacity that no sensible strategy exhausts: four times the live bytes, up to
// the next GiB.
func ample(live device.Size) device.Size {
	const most = 1 << 54 // a quarter of the simulated address space
	return device.AlignUp(4*min(live, most/4), device.GiB)
}

func candidate(s setting.Setup, n device.Size, on replay.Target) Candidate {
	on.Capacity = n
	return Candidate{Name: s.Name, Device: on, New: s.ForCapacity(n).New}
}

// play measures every figure. The memory run comes first, because it finds soonest a
// strategy that refuses a request.
func (m *match) play() error {
	for i := range m.runs {
		if err := m.measure(i); err != nil {
			return err
		}
	}
	if err := m.time(); err != nil {
		return err
	}
	for i := range m.runs {
		m.label(i)
		l, err := m.workload.latency(m.candidates[i])
		if err != nil {
			return err
		}
		m.runs[i].Latency = *l
		if err := m.steps.step(); err != nil {
			return err
		}
	}
	return nil
}

// label labels the samples of a profile.
func (m *match) label(i int) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(
		"strategy", m.runs[i].Strategy, "workload", m.loop.Workload, "live", strconv.Itoa(m.loop.Live))))
}

func (m *match) measure(i int) (err error) {
	m.label(i)
	r := &m.runs[i]
	if r.Config, err = json.Marshal(m.setups[i].Config); err != nil {
		return fmt.Errorf("%s: configuration: %w", r.Strategy, err)
	}
	f, err := m.workload.Figures(m.candidates[i])
	if err != nil {
		return err
	}
	if r.Named, r.SelfTimed = f.Named, f.SelfTimed; f.Referenced {
		r.ByRef = new(Timing)
	}
	live, blocks := float64(r.PeakLive), float64(r.Live)
	r.Address, r.AddressRatio = f.Address, ratio(float64(f.Address), live)
	r.Reserved, r.ReservedRatio = f.Reserved, ratio(float64(f.Reserved), live)
	r.HeapPerBlock = ratio(float64(f.Heap), blocks)
	if r.Metadata = f.Metadata; f.Metadata != nil {
		each := ratio(float64(*f.Metadata), blocks)
		r.MetadataPerBlock = &each
	}
	if err := m.steps.step(); err != nil || !m.o.Arena {
		return err
	}
	n, err := m.workload.arena(func(n device.Size) Candidate { return candidate(m.setups[i], n, m.o.Device) }, r.Device)
	if err != nil {
		return err
	}
	times := ratio(float64(n), live)
	r.Arena, r.ArenaRatio = &n, &times
	return m.steps.step()
}

func (m *match) time() error {
	for i := range m.runs {
		m.runs[i].MallocsPerPair = math.Inf(1)
	}
	for range m.o.Rounds {
		m.loop.add(m.workload.loop(), m.workload.Pairs)
		for i := range m.runs {
			m.label(i)
			if err := m.round(i); err != nil {
				return err
			}
			if m.runs[i].ByRef != nil {
				if err := m.roundByRef(i); err != nil {
					return err
				}
			}
			if err := m.steps.step(); err != nil {
				return err
			}
		}
	}
	m.loop.sum()
	for i := range m.runs {
		r := &m.runs[i]
		r.sum()
		if r.ByRef != nil {
			r.ByRef.sum()
		}
		r.Ratio = ratio(r.Median, m.runs[0].Median)
	}
	return nil
}

func (m *match) round(i int) error {
	p, err := m.workload.Prepare(m.candidates[i])
	if err != nil {
		return err
	}
	runtime.GC() // the garbage of the fill is not collected in the churn's time
	before := mallocs()
	ns, pairs, err := p.Churn(m.workload.Pairs)
	if err != nil {
		return err
	}
	taken := float64(mallocs()-before) / float64(pairs)
	m.runs[i].MallocsPerPair = min(m.runs[i].MallocsPerPair, taken) // other goroutines may allocate too
	m.runs[i].add(ns, pairs)
	return p.Close()
}

// roundByRef is round with frees by reference, for the time alone.
func (m *match) roundByRef(i int) error {
	k := m.candidates[i]
	k.ByRef = true
	p, err := m.workload.Prepare(k)
	if err != nil {
		return err
	}
	runtime.GC()
	ns, pairs, err := p.Churn(m.workload.Pairs)
	if err != nil {
		return err
	}
	m.runs[i].ByRef.add(ns, pairs)
	return p.Close()
}

func (t *Timing) add(ns int64, pairs int) {
	t.Rounds = append(t.Rounds, ratio(float64(ns), float64(pairs)))
}

func (t *Timing) sum() { *t = TimingOf(t.Rounds) }

// TimingOf summarizes the nanoseconds per pair of rounds, in order.
//
// Precondition: there is at least one.
func TimingOf(rounds []float64) Timing {
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	return Timing{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Rounds: rounds}
}

// ratio returns a/b, 0 if b is 0: a clock may be too coarse for a short run.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
