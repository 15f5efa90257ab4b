package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// mostThreads bounds a number of threads.
const mostThreads = 256

// ParseThreads returns numbers of threads that are separated by commas. An error is a
// [*SelectionError].
func ParseThreads(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > mostThreads {
			return nil, &SelectionError{"threads", fmt.Errorf("%q: want whole numbers from 1 to %d, separated by commas",
				text, mostThreads)}
		}
		all = append(all, n)
	}
	return all, nil
}

// Locking is how the threads of a [ThreadRun] share a strategy.
type Locking string

// The ways to share a strategy.
const (
	NoLock   Locking = "none"   // one thread, and no lock
	OneMutex Locking = "mutex"  // one mutex around the strategy
	InShards Locking = "shards" // a shard with a mutex for each thread
	OwnLocks Locking = "own"    // the strategy's own locks
)

// ThreadRun holds the figures of one strategy that several threads call at once. Each thread has
// its own part of the workload and its own blocks. Sizes are bytes.
type ThreadRun struct {
	Strategy string          `json:"strategy"` // name and preset
	Config   json.RawMessage `json:"config"`   // fitted to the device
	Locking  Locking         `json:"locking"`  // how the threads share the strategy
	Threads  int             `json:"threads"`  // goroutines
	Load                     // of all threads; parameters and hash of the first
	Timing                   // wall-clock time, divided by the pairs of all threads
	// median / median of the same strategy behind one mutex with as many threads; null: one thread
	// without a lock
	Ratio         *float64    `json:"ratio_to_mutex"`
	Reserved      device.Size `json:"peak_reserved_bytes"` // most held from the device, in any round
	ReservedRatio float64     `json:"reserved_ratio"`      // the same / peak live bytes
	// host memory of the strategy at the end of a round, the most of all; null: not known
	Metadata *device.Size `json:"metadata_bytes"`
	// the same / most live blocks
	MetadataPerBlock *float64 `json:"metadata_bytes_per_block"`
}

// threadGroup is a workload divided among threads.
type threadGroup struct {
	load      Load
	workloads []*Workload // of each thread
}

// newThreadGroup returns the parts of n threads, each with a seed of its own.
func newThreadGroup(w workload.Workload, n int, o Options) (*threadGroup, error) {
	c := &threadGroup{load: Load{Workload: w.Shape().Name}}
	for i := range n {
		p := w.Params()
		p.Live, p.Pairs, p.Steps = share(p.Live, n), share(p.Pairs, n), share(p.Steps, n)
		p.Seed += uint64(i)
		part, err := w.Shape().New(p)
		if err != nil {
			return nil, err
		}
		program := part.Program()
		if i == 0 {
			c.load.Params, c.load.Hash = p, program.Summary.Hash
		}
		load := NewWorkload(program, workload.MaxSize)
		c.workloads = append(c.workloads, load)
		c.load.Live += load.PeakBlocks
		c.load.Pairs += load.Pairs
		c.load.PeakLive += load.PeakLive
	}
	if c.load.Device = o.Capacity; c.load.Device == 0 {
		c.load.Device = o.Device.Ample(ample(c.load.PeakLive))
	}
	return c, nil
}

// share returns the part of a parameter that one of n threads has; 0 stays 0.
func share(all, n int) int { return max(all/n, min(all, 1)) }

// entry is a strategy with one way to share it.
type entry struct {
	ThreadRun
	setup setting.Setup
}

// entries returns the ways in which n threads can share a strategy. It builds the strategy once.
func (c *threadGroup) entries(s setting.Setup, on replay.Target) (all []*entry, err error) {
	n := len(c.workloads)
	add := func(locking Locking, s setting.Setup) error {
		e := &entry{setup: s.ForCapacity(c.load.Device)}
		e.Strategy, e.Locking, e.Threads, e.Load = s.Name, locking, n, c.load
		e.Config, err = json.Marshal(e.setup.Config)
		all = append(all, e)
		return err
	}
	safe, err := c.safe(s, on)
	switch {
	case err != nil:
		return nil, err
	case safe:
		return all, add(OwnLocks, s)
	}
	if n == 1 {
		err = add(NoLock, s)
	}
	err = errors.Join(err, add(OneMutex, s))
	sharded, wrong := s.Sharded(s.Name, n, "thread")
	if err = errors.Join(err, wrong); err == nil {
		err = add(InShards, sharded)
	}
	if own, ok := s.WithLocks(); ok && err == nil {
		err = add(OwnLocks, own)
	}
	return all, err
}

// safe reports whether a strategy is safe for concurrent use by itself.
func (c *threadGroup) safe(s setting.Setup, on replay.Target) (bool, error) {
	p, err := c.workloads[0].begin(candidate(s, c.load.Device, on))
	if err != nil {
		return false, err
	}
	return power.Has(p.strategy, power.PowerConcurrent), p.Close()
}

// threaded times every strategy with n threads.
func (m *match) threaded(w workload.Workload, setups []setting.Setup, n int) (runs []ThreadRun, err error) {
	c, err := newThreadGroup(w, n, m.o)
	if err != nil {
		return nil, err
	}
	for _, s := range setups {
		entries, err := c.entries(s, m.o.Device)
		if err != nil {
			return nil, err
		}
		for range m.o.Rounds {
			for _, e := range entries {
				if err := c.round(e, m.o.Device); err != nil {
					return nil, err
				}
			}
		}
		var mutex float64
		for _, e := range entries {
			if e.sum(); e.Locking == OneMutex {
				mutex = e.Median
			}
			e.ReservedRatio = ratio(float64(e.Reserved), float64(e.PeakLive))
			if e.Metadata != nil {
				each := ratio(float64(*e.Metadata), float64(e.Live))
				e.MetadataPerBlock = &each
			}
		}
		for _, e := range entries {
			if e.Locking != NoLock && mutex != 0 {
				times := e.Median / mutex
				e.Ratio = &times
			}
			runs = append(runs, e.ThreadRun)
		}
		if err := m.steps.step(); err != nil {
			return runs, err
		}
	}
	return runs, nil
}

// round runs the parts of all threads once, over a new instance. Only the churn is timed.
func (c *threadGroup) round(e *entry, on replay.Target) error {
	k := candidate(e.setup, c.load.Device, on)
	if e.Locking == OneMutex {
		k.New = func(src device.Source) (alloc.Strategy, error) {
			s, err := e.setup.New(src)
			if err != nil {
				return nil, err
			}
			return wrap.Locked(s)
		}
	}
	first, err := c.workloads[0].begin(k)
	if err != nil {
		return err
	}
	passes := make([]Pass, len(c.workloads))
	for i, load := range c.workloads {
		passes[i] = *first
		passes[i].workload, passes[i].origin = load, alloc.OriginOf(0, uint32(i)+1)
		if err := passes[i].run(load.untimed, 0); err != nil {
			return err
		}
	}
	runtime.GC() // so that the garbage of the fill is not collected in the churn's time
	ns, err := together(passes)
	if err != nil {
		return err
	}
	e.add(ns, c.load.Pairs)
	e.Reserved = max(e.Reserved, first.device.Usage().PeakHeld)
	if n, err := power.MetadataBytes(first.strategy); err == nil && (e.Metadata == nil || n > *e.Metadata) {
		e.Metadata = &n
	}
	return first.Close()
}

// together runs the churns concurrently, each in a goroutine, and returns the nanoseconds from the
// common start to the end of the last.
func together(passes []Pass) (ns int64, err error) {
	errs := make([]error, len(passes))
	var ready, done sync.WaitGroup
	ready.Add(len(passes))
	start := make(chan struct{})
	for i := range passes {
		done.Go(func() {
			p := &passes[i]
			ready.Done()
			<-start
			errs[i] = p.run(p.workload.churn, len(p.workload.untimed))
		})
	}
	ready.Wait()
	began := replay.WallTime()
	close(start)
	done.Wait()
	return replay.WallTime() - began, errors.Join(errs...)
}
