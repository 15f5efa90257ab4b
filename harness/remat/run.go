package remat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Config configures a run.
type Config struct {
	Heuristic string          // one of Heuristics, mge and mge-nofrag with ScoreSettings, or one of Plans
	Liveness  string          // one of Livenesses
	Budget    device.Size     // memory to plan for, if Heuristic is one of Plans
	Limit     int64           // abort after this many ns of recomputation; 0: never
	Seed      uint64          // for the heuristic random
	Trigger   Trigger         // when victims are chosen; zero: before an operator, until Memory.Room allows it
	Ladder    string          // steps after a refusal: one of Ladders, or a list of steps; empty: none
	Defrag    Defrag          // zero: slide
	Observer  Observer        // receives events; may be nil
	Stop      <-chan struct{} // closing it ends the run after the current operator; may be nil

	Sampling   Sampling // candidates the heuristic considers; zero: all
	MinEvictee Minimum  // storages too small to be evicted; zero: none
	Quirks     Quirks   // MegEngine's quirks to reproduce; zero: none

	ParentOrder  ParentOrder // order of missing inputs; zero: by argument
	EagerInRemat bool        // evict a dead storage restored by a rerun after its last read, as OneFlow does

	plan *planLiveness // the liveness of a plan, or nil
}

// Cause is the reason for an eviction.
type Cause uint8

const (
	// Pressure: chosen by the heuristic because memory was short.
	Pressure Cause = iota
	// Dead: its last reference was released.
	Dead
	// Banished: the liveness policy freed it permanently.
	Banished
	// Dropped: a step of the schedule evicted it.
	Dropped
	// Swapped: chosen by the heuristic as with Pressure, and copied to the host.
	Swapped

	causes
)

// Observer receives the events of a run. Each method is called right after its event.
type Observer interface {
	// OnRun is called when an operator has run: for the first time, or again to restore its output
	// wanted. On the first run wanted is the first output.
	OnRun(op int32, wanted Tensor, again bool)
	// OnEvict is called when a storage has been evicted.
	OnEvict(storage int32, why Cause)
	// OnReturn is called when a swapped storage has memory again: new memory, into which it is copied
	// from now on, or its old memory if the copy to the host has not ended.
	OnReturn(storage int32, copied bool)
	// OnForget is called when a storage has been freed permanently. If it was resident, OnEvict was
	// called before.
	OnForget(storage int32)
}

// Verdict is the outcome of a run.
type Verdict string

const (
	// OK: the schedule ran to its end.
	OK Verdict = "ok"
	// OOM: memory was short and no storage could be evicted. With an [Addressed] memory the verdict
	// is one of the next three instead.
	OOM Verdict = "oom"
	// OOMCapacity: the requested bytes of the live blocks and of the refused request exceed the
	// budget.
	OOMCapacity Verdict = "oom-capacity"
	// OOMFragmentation: enough bytes were free, but no hole was large enough.
	OOMFragmentation Verdict = "oom-fragmentation"
	// OOMRounding: the requested bytes would fit, but block sizes are rounded up.
	OOMRounding Verdict = "oom-rounding"
	// Thrash: recomputation exceeded its limit.
	Thrash Verdict = "thrash"
	// Stopped: Config.Stop was closed.
	Stopped Verdict = "stopped"
)

// Result is the outcome of a run. If the verdict is not ok, it holds the state at the end of the
// run.
type Result struct {
	Verdict         Verdict       // how it ended
	Clock           int64         // nanoseconds of all runs of operators, and stalls of Swaps; starts at 1
	ModelTime       int64         // nanoseconds of first runs
	RematTime       int64         // nanoseconds of reruns
	Peak            device.Size   // most bytes of resident tensors and workspace at once
	Evictions       [causes]int   // storages evicted, by Cause
	EvictedBytes    [causes]int64 // their bytes
	Runs            int           // runs of operators, reruns included
	Remats          int           // reruns of operators
	DeepestChain    int           // most reruns waiting for each other at once
	Collateral      int           // missing outputs that a rerun restored, too
	EvictingRuns    int           // runs of operators that evicted a storage first
	Refusals        Refusals      // requests that an Addressed memory refused
	WindowEvictions int           // storages evicted together with adjacent ones
	WastedBytes     int64         // bytes of victims that overlap no block of the operator they made room for
	Moves           Moves         // defragmentation
	Swaps           Swaps         // copies to the host
	VictimsSHA256   string        // of the root tensors of the victims, in order, a comma after each
}

// Refusals summarises the state of memory when it refused requests.
type Refusals struct {
	Count   int   // refused requests, retries included
	Free    int64 // free bytes, summed over refusals
	Largest int64 // bytes of the largest hole, summed over refusals
}

// Run runs a schedule in an empty memory. The storages that are resident at the end keep their
// blocks. Run returns an error only if the configuration is invalid.
//
// Each choice of a victim visits every candidate. The number of reruns can be exponential in the
// depth of the schedule. Config.Limit bounds their total time; operators that take no time are not
// bounded.
func Run(s *Schedule, m Memory, c Config) (Result, error) {
	if p := planOf(c.Heuristic); p != nil {
		return runPlan(p, s, m, c)
	}
	r, err := newRunner(s, m, c)
	if err != nil {
		return Result{}, err
	}
	r.res.Verdict = r.steps()
	if r.swap != nil {
		r.swap.end()
	}
	r.res.Clock = r.clock
	r.res.VictimsSHA256 = hex.EncodeToString(r.victims.Sum(nil))
	return r.res, nil
}

// none means no tensor.
const none Tensor = -1

// store is the state of a storage during a run.
type store struct {
	resident, pinned bool
	discarded        bool        // freed permanently; if its producer reruns, the output is discarded
	locks            int32       // arguments of operators that wait to run, plus 1 if it is pinned
	refs             int32       // references of the program to its views
	first, last      Tensor      // its views so far, linked by runner.nextView
	access           int64       // clock at its last use
	local            int64       // ns of the distinct operators that produced its views
	block            alloc.Block // valid while it is resident
}

// runner is the state of a run.
type runner struct {
	s           *Schedule
	c           Config
	mem         Memory
	addressed   Addressed // mem, if it is Addressed
	h           *Heuristic
	trigger     *trigger
	ladder      []*ladderStep
	live        liveness
	scorer      scorer    // nil: victims are drawn at random
	costs       coster    // scorer, if it is a coster
	ranks       ranker    // scorer, if it is a ranker
	adjacent    Neighbors // mem, if it implements Neighbors
	graph       *graph    // built by scorer; may be nil
	random      *workload.Rand
	stores      []store
	defined     []bool   // by tensor: it can be read
	nextView    []Tensor // by tensor: the next view of its storage
	pool        pool
	swap        *swapper // nil if nothing can be swapped
	step        int32    // index in the schedule
	clock       int64
	used        device.Size   // bytes of resident tensors
	requested   device.Size   // bytes of the request that needs victims
	evicting    bool          // memory was short for the operator about to run
	vacated     []alloc.Block // blocks evicted for it
	frames      []frame
	missing     []Tensor     // inputs of all frames
	restored    []int32      // storages restored by the last operator
	outputBytes device.Size  // by all operators
	blocks      []OwnedBlock // of the current operator and its workspace
	eagerRemat  *eagerRemat  // nil unless Config.EagerInRemat
	orderChains chains       // for order
	victims     hash.Hash
	text        []byte  // scratch for victims
	sampled     []int32 // scratch for sample
	large       []int32 // scratch for largeEnough
	res         Result
}

func newRunner(s *Schedule, m Memory, c Config) (*runner, error) {
	h, swap, err := heuristicOf(c.Heuristic)
	if err == nil {
		err = c.check()
	}
	if err == nil {
		err = CanRun(s, c.Heuristic)
	}
	if err != nil {
		return nil, err
	}
	r := &runner{s: s, c: c, mem: m, h: h, random: workload.NewRand(c.Seed), clock: 1, victims: sha256.New()}
	if err := r.configureEviction(); err != nil {
		return nil, err
	}
	n := len(s.Storages)
	r.stores, r.pool = make([]store, n), newPool(n, c.Quirks&QuirkVector != 0)
	for i := range r.stores {
		r.stores[i].access, r.stores[i].first = math.MinInt64, none
	}
	if swap.way != dropAlways || slices.ContainsFunc(r.ladder, func(s *ladderStep) bool { return s.name == "swap" }) {
		r.swap, r.res.Swaps.Possible = newSwapper(r, swap), true
	}
	r.adjacent, _ = m.(Neighbors)
	r.defined, r.nextView = make([]bool, len(s.Tensors)), make([]Tensor, len(s.Tensors))
	if h.newScorer != nil {
		r.scorer = h.newScorer(r)
		r.costs, _ = r.scorer.(coster)
		r.ranks, _ = r.scorer.(ranker)
	}
	if c.EagerInRemat {
		r.eagerRemat = newEagerRemat(r)
	}
	for _, l := range livenesses() {
		if l.name == c.Liveness {
			r.live = l.start(r)
		}
	}
	switch {
	case c.plan != nil:
		r.live = c.plan.begin(r)
	case r.live == nil:
		return nil, fmt.Errorf("liveness %q: %swant %s", c.Liveness, nearest.Hint(c.Liveness, Livenesses()),
			strings.Join(Livenesses(), ", "))
	}
	return r, nil
}

func (r *runner) steps() Verdict {
	for i, step := range r.s.Steps {
		v := OK
		r.step = int32(i)
		switch step.Kind {
		case Compute:
			v = r.compute(step.Of)
		case Retain:
			r.storeOf(Tensor(step.Of)).refs++
		case Release:
			s := r.s.Tensors[step.Of].Storage
			r.stores[s].refs--
			if r.stores[s].refs == 0 {
				v = r.live.onRelease(s)
			}
		case Drop:
			if s := r.s.Tensors[step.Of].Storage; r.stores[s].resident && r.stores[s].locks == 0 {
				r.evict(s, Dropped)
			}
		case Pin:
			if !r.defined[step.Of] {
				v = r.materialize(Tensor(step.Of), true)
			}
			if v == OK {
				r.pin(r.s.Tensors[step.Of].Storage)
			}
		}
		if v != OK {
			return v
		}
	}
	return OK
}

func (r *runner) compute(number int32) Verdict {
	op := &r.s.Ops[number]
	for t := range op.outputs() {
		r.create(t, op)
	}
	r.live.onCreate(op)
	if r.scorer != nil {
		r.scorer.onLink(op)
	}
	if v := r.materialize(op.First, false); v != OK {
		return v
	}
	for t := range op.outputs() {
		r.storeOf(t).access = r.clock // not used yet, but new: otherwise it would be the first victim
		if op.Fixed || r.small(t) {
			r.pin(r.s.Tensors[t].Storage)
		}
	}
	return OK
}

func (r *runner) create(t Tensor, op *Op) {
	st := r.storeOf(t)
	r.nextView[t] = none
	st.refs++
	if st.first == none {
		st.first, st.last, st.local = t, t, op.Cost
		return
	}
	if st.last < op.First { // otherwise a view of the same operator has added its cost
		st.local += op.Cost
	}
	r.nextView[st.last], st.last = t, t
}

func (r *runner) storeOf(t Tensor) *store { return &r.stores[r.s.Tensors[t].Storage] }

func (r *runner) lock(s int32) {
	r.pool.drop(s)
	if r.swap != nil {
		r.swap.fixed.drop(s)
	}
	r.stores[s].locks++
}

func (r *runner) unlock(s int32) {
	r.stores[s].locks--
	r.admit(s)
}

// admit makes a storage evictable if it is not locked, or swappable if only its pin locks it.
func (r *runner) admit(s int32) {
	st := &r.stores[s]
	switch {
	case r.swap != nil && r.swap.places[s] != inMemory:
	case st.locks == 0:
		r.pool.add(s)
	case r.swap != nil && st.pinned && st.locks == 1 && st.resident && r.swap.worthMoving(s):
		r.swap.fixed.add(s)
	}
}

func (r *runner) pin(s int32) {
	if st := &r.stores[s]; !st.pinned {
		st.pinned = true
		r.lock(s)
		r.admit(s)
	}
}

// evict removes a storage from memory and undefines all its views.
func (r *runner) evict(s int32, why Cause) {
	st, size := &r.stores[s], r.s.Storages[s].Size
	st.resident = false
	if r.swap == nil || !r.swap.discard(s) {
		r.used -= size
		if size > 0 {
			r.mem.Free(st.block)
			if why == Pressure {
				r.vacated = append(r.vacated, st.block)
			}
		}
	}
	r.pool.drop(s)
	for t := st.first; t != none; t = r.nextView[t] {
		r.defined[t] = false
	}
	r.live.onEvict(s)
	if r.scorer != nil {
		r.scorer.onEvict(s, why)
	}
	r.countEviction(s, why)
}

func (r *runner) countEviction(s int32, why Cause) {
	r.res.Evictions[why]++
	r.res.EvictedBytes[why] += int64(r.s.Storages[s].Size)
	if why == Pressure || why == Swapped {
		r.text = append(strconv.AppendInt(r.text[:0], int64(r.s.Storages[s].Root), 10), ',')
		r.victims.Write(r.text)
	}
	if r.c.Observer != nil {
		r.c.Observer.OnEvict(s, why)
	}
}

// returned reports that a swapped storage has memory again.
func (r *runner) returned(s int32, copied bool) {
	if r.c.Observer != nil {
		r.c.Observer.OnReturn(s, copied)
	}
}

// forget reports that a storage has been freed permanently.
func (r *runner) forget(s int32) {
	if r.scorer != nil {
		r.scorer.onForget(s)
	}
	if r.c.Observer != nil {
		r.c.Observer.OnForget(s)
	}
}
