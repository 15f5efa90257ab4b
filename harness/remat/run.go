package remat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Config is how a schedule is run.
type Config struct {
	Heuristic string          // of Heuristics
	Liveness  string          // of Livenesses
	Limit     int64           // nanoseconds of recomputation that are too many when passed; 0 for no limit
	Seed      uint64          // for the heuristic random
	Trigger   Trigger         // when victims are chosen; zero: before an operator runs, as Memory.Room says
	Ladder    string          // what to try when memory refuses: of Ladders, or a list of steps; empty: none
	Defrag    Defrag          // how blocks are moved; zero: all may slide
	Watch     Watcher         // told what happens; nil for nobody
	Stop      <-chan struct{} // ends the run behind the next operator when it is closed; nil for never

	Sampling   Sampling // which candidates the heuristic looks at; all
	MinEvictee Minimum  // which storages are too small to be evicted; none
	Quirks     Quirks   // of MegEngine, to be reproduced; none

	ParentOrder  ParentOrder // which of several missing inputs is made first; by argument
	EagerInRemat bool        // evict a dead storage that was made again as soon as it was read, as OneFlow
}

// Cause is why a storage was evicted.
type Cause uint8

const (
	// Pressure is that the heuristic chose it because memory was short.
	Pressure Cause = iota
	// Dead is that the last reference to it was released.
	Dead
	// Banished is that it will never be needed again.
	Banished
)

// Watcher is told what happens in a run, right after it has happened.
type Watcher interface {
	// Ran is called when an operator has run; again is false for its first time. For again, of is the
	// tensor that was wanted.
	Ran(op int32, of Tensor, again bool)
	// Evicted is called when a storage has been evicted.
	Evicted(storage int32, why Cause)
	// Gone is called when a storage has been freed for good, resident until then or not.
	Gone(storage int32)
}

// Verdict is how a run ended.
type Verdict string

const (
	// OK is that the schedule was run to its end.
	OK Verdict = "ok"
	// OOM is that memory was short and nothing could be evicted. Memory with addresses says instead
	// which of the three that follow it was.
	OOM Verdict = "oom"
	// OOMCapacity is that the bytes asked for would not have fitted however well they were placed.
	OOMCapacity Verdict = "oom-capacity"
	// OOMFragmentation is that enough was free, and no place in it.
	OOMFragmentation Verdict = "oom-fragmentation"
	// OOMRounding is that the bytes asked for would have fitted, and what they are rounded up to did
	// not.
	OOMRounding Verdict = "oom-rounding"
	// Thrash is that recomputation passed its limit.
	Thrash Verdict = "thrash"
	// Stopped is that Config.Stop was closed.
	Stopped Verdict = "stopped"
)

// Result is what a run came to. If its verdict is not ok, it shows the state at the end of the run.
type Result struct {
	Verdict       Verdict     // how it ended
	Clock         int64       // nanoseconds; starts at 1
	Model         int64       // nanoseconds of first runs of operators
	Remat         int64       // nanoseconds of recomputation
	Peak          device.Size // most bytes accounted at once
	Evictions     [3]int      // storages evicted, by Cause
	EvictedBytes  [3]int64    // their bytes
	Runs          int         // of operators, recomputation included
	Remats        int         // runs of operators again
	Deepest       int         // most operators at once that were to run again and waited, or ran, one for the other
	Collateral    int         // outputs that came back with another that was wanted
	RoomsMade     int         // runs of operators for which something had to be evicted
	Refusals      Refusals    // of a memory with addresses
	Windows       int         // storages of Evictions that went because they lay side by side
	Wasted        int64       // bytes evicted for an operator none of whose blocks came to lie there
	Moves         Moves       // of blocks, to make free memory one piece
	VictimsSHA256 string      // of the roots of victims of pressure in order, each with a comma behind it
}

// Refusals is how often memory had no place for a block, and how scattered it was then.
type Refusals struct {
	Count   int   // requests refused; one that is made again counts again
	Free    int64 // sum over them of bytes that were free
	Largest int64 // sum over them of bytes of the largest hole
}

// Run runs a schedule in a memory that is empty, and leaves what is resident at the end in it. It
// fails only if the configuration makes no sense. One choice of a victim costs a look at every
// storage that may be evicted. Recomputation may take time exponential in the depth of a schedule;
// what ends it is the limit, so operators that cost nothing are not bounded.
func Run(s *Schedule, m Memory, c Config) (Result, error) {
	r, err := newRunner(s, m, c)
	if err != nil {
		return Result{}, err
	}
	r.res.Verdict = r.steps()
	r.res.Clock = r.clock
	r.res.VictimsSHA256 = hex.EncodeToString(r.victims.Sum(nil))
	return r.res, nil
}

// none stands for no tensor.
const none Tensor = -1

// store is the state of a storage.
type store struct {
	resident, pinned bool
	gone             bool // for good: what an operator makes of it again is thrown away
	locks, refs      int32
	first, last      Tensor // the views that were made of it, linked by runner.later
	access           int64  // when it was used last
	local            int64  // ns of the distinct operators that make its views
	block            alloc.Block
}

// runner is a run.
type runner struct {
	s         *Schedule
	c         Config
	mem       Memory
	space     Addressed // mem, if its blocks lie somewhere
	h         *Heuristic
	trigger   *trigger
	ladder    []*step
	live      liveness
	near      neighbourhood // nil if victims are drawn
	costs     coster        // near, unless it is a ranker
	ranks     ranker        // near, if it has scores of its own
	around    Neighbours    // mem, if it has addresses
	graph     *graph        // of near; nil if it needs none
	random    *workload.Rand
	stores    []store
	defined   []bool   // by tensor: it can be read
	later     []Tensor // by tensor: the next view of its storage
	pool      pool
	step      int32 // of the schedule
	clock     int64
	used      device.Size   // bytes accounted
	want      device.Size   // bytes of the request that victims are chosen for
	short     bool          // memory was short for the operator that is about to run
	vacated   []alloc.Block // where victims for it lay
	frames    []frame
	missing   []Tensor    // of all frames
	fresh     []int32     // storages that came back in a run of an operator
	bytesMade device.Size // by all operators
	blocks    []Moving    // of an operator that runs, and its workspace
	replay    *replay     // nil unless Config.EagerInRemat
	ordering  chains      // for order
	victims   hash.Hash
	text      []byte  // scratch for victims
	some      []int32 // scratch for sample
	large     []int32 // scratch for worth
	res       Result
}

func newRunner(s *Schedule, m Memory, c Config) (*runner, error) {
	h, err := heuristicOf(c.Heuristic)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	r := &runner{s: s, c: c, mem: m, h: h, random: workload.NewRand(c.Seed), clock: 1, victims: sha256.New()}
	if err := r.reactions(); err != nil {
		return nil, err
	}
	n := len(s.Storages)
	r.stores, r.pool = make([]store, n), newPool(n, c.Quirks&QuirkVector != 0)
	for i := range r.stores {
		r.stores[i].access, r.stores[i].first = math.MinInt64, none
	}
	r.around, _ = m.(Neighbours)
	r.defined, r.later = make([]bool, len(s.Tensors)), make([]Tensor, len(s.Tensors))
	if h.near != nil {
		r.near = h.near(r)
		r.costs, _ = r.near.(coster)
		r.ranks, _ = r.near.(ranker)
	}
	if c.EagerInRemat {
		r.replay = newReplay(r)
	}
	for _, l := range livenesses() {
		if l.name == c.Liveness {
			r.live = l.start(r)
		}
	}
	switch {
	case r.live == nil:
		return nil, fmt.Errorf("liveness %q: %swant %s", c.Liveness, nearest.Hint(c.Liveness, Livenesses()),
			strings.Join(Livenesses(), ", "))
	case h.linked && c.Liveness == "banish":
		return nil, fmt.Errorf("heuristic %s keeps neighbourhoods that liveness banish would tear apart: "+
			"want another", h.Name)
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
		case Get:
			r.storeOf(Tensor(step.Of)).refs++
		case Release:
			s := r.s.Tensors[step.Of].Storage
			r.stores[s].refs--
			if r.stores[s].refs == 0 {
				r.live.died(s)
			}
		case Pin:
			if !r.defined[step.Of] {
				v = r.materialise(Tensor(step.Of), true)
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
		r.bear(t, op)
	}
	r.live.born(op)
	if r.near != nil {
		r.near.linked(op)
	}
	if v := r.materialise(op.First, false); v != OK {
		return v
	}
	for t := range op.outputs() {
		r.storeOf(t).access = r.clock // or it would be the first to go
		if op.Fixed || r.small(t) {
			r.pin(r.s.Tensors[t].Storage)
		}
	}
	return OK
}

func (r *runner) bear(t Tensor, op *Op) {
	st := r.storeOf(t)
	r.later[t] = none
	st.refs++
	if st.first == none {
		st.first, st.last, st.local = t, t, op.Cost
		return
	}
	if st.last < op.First { // another view of the same operator has brought its cost
		st.local += op.Cost
	}
	r.later[st.last], st.last = t, t
}

func (r *runner) storeOf(t Tensor) *store { return &r.stores[r.s.Tensors[t].Storage] }

func (r *runner) lock(s int32) {
	r.pool.drop(s)
	r.stores[s].locks++
}

func (r *runner) unlock(s int32) {
	st := &r.stores[s]
	if st.locks--; st.locks == 0 {
		r.pool.add(s)
	}
}

func (r *runner) pin(s int32) {
	if st := &r.stores[s]; !st.pinned {
		st.pinned = true
		r.lock(s)
	}
}

// evict takes a storage out of memory. All its views are gone with it.
func (r *runner) evict(s int32, why Cause) {
	st, size := &r.stores[s], r.s.Storages[s].Size
	st.resident = false
	r.used -= size
	if size > 0 {
		r.mem.Free(st.block)
		if why == Pressure {
			r.vacated = append(r.vacated, st.block)
		}
	}
	r.pool.drop(s)
	for t := st.first; t != none; t = r.later[t] {
		r.defined[t] = false
	}
	r.live.left(s)
	if r.near != nil {
		r.near.left(s, why)
	}
	r.res.Evictions[why]++
	r.res.EvictedBytes[why] += int64(size)
	if why == Pressure {
		r.text = append(strconv.AppendInt(r.text[:0], int64(r.s.Storages[s].Root), 10), ',')
		r.victims.Write(r.text)
	}
	if r.c.Watch != nil {
		r.c.Watch.Evicted(s, why)
	}
}

// forget takes a storage that is not resident out of all neighbourhoods.
func (r *runner) forget(s int32) {
	if r.near != nil {
		r.near.gone(s)
	}
	if r.c.Watch != nil {
		r.c.Watch.Gone(s)
	}
}
