package recompute

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// audit keeps its own account of a run from the events. Each tensor has a value, made of its
// operator and of the values that this read.
type audit struct {
	c        remat.Config
	s        *remat.Schedule
	memory   *ledger
	resident []bool // by storage
	lasting  []bool // by storage: it cannot be recomputed, or a step before the next operator keeps it
	kept     []bool // by storage: likewise, and the step was before the last operator
	gone     []bool // by storage
	away     []bool // by storage: swapped out, and without new memory
	copies   copies
	refs     []int          // by storage: references before the next operator runs
	newest   []remat.Tensor // by storage: its last in-place write
	shows    []remat.Tensor // by tensor: the newest of its storage when it was made
	defined  []bool         // by tensor
	value    []uint64       // by tensor: of its first run
	step     int            // the operator that runs first next
	between  []remat.Step   // steps before it
	result   remat.Result   // as the events have it; after the run, its result
	stop     chan struct{}  // closed after mostRuns operators
	found    *Violation     // the first
	events   []event        // in order
	runs     map[int32]int  // by operator
}

// event is an event of a run.
type event struct {
	what string
	of   int32
}

// mostRuns bounds the operators of a run.
const mostRuns = 100_000

// ledger is a memory that adds up the bytes of its blocks.
type ledger struct {
	remat.Memory
	held device.Size
}

func (l *ledger) Alloc(size device.Size, owner remat.Owner) (alloc.Block, bool) {
	b, ok := l.Memory.Alloc(size, owner)
	if ok {
		l.held += b.Size
	}
	return b, ok
}

func (l *ledger) Free(b alloc.Block) {
	l.held -= b.Size
	l.Memory.Free(b)
}

// neighbors is a ledger of a memory with addresses.
type neighbors struct {
	*ledger
	remat.Neighbors
}

// run runs a schedule under an audit.
func run(s *remat.Schedule, m remat.Memory, c remat.Config) (*audit, error) {
	n, tensors := len(s.Storages), len(s.Tensors)
	a := &audit{c: c, s: s, memory: &ledger{Memory: m}, stop: make(chan struct{}), runs: map[int32]int{}}
	a.resident, a.lasting, a.kept, a.gone = make([]bool, n), make([]bool, n), make([]bool, n), make([]bool, n)
	a.away, a.copies.end = make([]bool, n), make([]float64, n)
	a.refs, a.newest, a.shows = make([]int, n), make([]remat.Tensor, n), make([]remat.Tensor, tensors)
	a.defined, a.value = make([]bool, tensors), make([]uint64, tensors)
	a.proceed()
	c.Observer, c.Stop, c.Limit = a, a.stop, 3*s.Cost+a.copyAllowance()
	m = a.memory
	if n, ok := a.memory.Memory.(remat.Neighbors); ok {
		m = neighbors{a.memory, n}
	}
	res, err := remat.Run(s, m, c)
	if err != nil {
		return nil, err
	}
	a.end(res)
	return a, nil
}

func (a *audit) breaks(n Number, format string, args ...any) {
	if a.found == nil {
		a.found = &Violation{n.String(), fmt.Sprintf(format, args...)}
	}
}

// proceed takes the steps up to the next operator.
func (a *audit) proceed() {
	a.between = a.between[:0]
	for ; a.step < len(a.s.Steps) && a.s.Steps[a.step].Kind != remat.Compute; a.step++ {
		step := a.s.Steps[a.step]
		storage := a.s.Tensors[step.Of].Storage
		switch step.Kind {
		case remat.Retain:
			a.refs[storage]++
		case remat.Release:
			a.refs[storage]--
		case remat.Pin:
			a.lasting[storage] = true
		case remat.Compute, remat.Drop:
		}
		a.between = append(a.between, step)
	}
}

// OnRun implements remat.Observer.
func (a *audit) OnRun(number int32, of remat.Tensor, again bool) {
	if a.found != nil {
		return
	}
	a.events = append(a.events, event{"ran", number})
	op := &a.s.Ops[number]
	resident := a.sum()
	value := a.read(number, again)
	if a.runs[number]++; !again {
		a.first(number)
	}
	if a.result.Peak = max(a.result.Peak, resident+op.OutputBytes+op.Workspace); a.defined[of] {
		a.breaks(MContents, "operator %d runs for tensor %d, which is there", number, of)
	}
	for t := op.First; t < op.First+remat.Tensor(op.Outputs); t++ {
		value = workload.NewRand(value + 1).Next()
		a.define(t, op, value, again)
	}
	// Beside resident storages, memory holds the ones on their way to the host.
	if sum := a.sum(); a.found == nil && (sum > a.memory.held || sum < a.memory.held && a.swapped() == 0) {
		a.breaks(MBytes, "storages of %d bytes are resident and blocks of %d are held", sum, a.memory.held)
	}
	a.count(op, again)
}

// count adds a run to the result.
func (a *audit) count(op *remat.Op, again bool) {
	a.result.Clock += op.Cost
	a.copies.now += float64(op.Cost)
	if a.result.Runs++; a.result.Runs == mostRuns {
		close(a.stop)
	}
	if again {
		a.result.Remats++
		a.result.RematTime += op.Cost
	} else {
		a.result.ModelTime += op.Cost
	}
}

// first judges that operator number is the next to run first, and takes the steps after it.
func (a *audit) first(number int32) {
	if a.step >= len(a.s.Steps) || a.s.Steps[a.step].Of != number {
		a.breaks(MCounts, "operator %d runs out of order", number)
		return
	}
	a.judgeDrops(number)
	copy(a.kept, a.lasting)
	op := &a.s.Ops[number]
	for t := op.First; t < op.First+remat.Tensor(op.Outputs); t++ {
		v := a.s.Tensors[t]
		if a.refs[v.Storage]++; v.Written || a.s.Storages[v.Storage].Root == t {
			a.newest[v.Storage] = t
		}
		a.shows[t] = a.newest[v.Storage]
		a.kept[v.Storage] = a.kept[v.Storage] || op.Fixed
		if a.lasting[v.Storage] = a.lasting[v.Storage] || op.Fixed; a.s.Storages[v.Storage].Size <= a.c.MinEvictee.Size {
			a.lasting[v.Storage] = a.lasting[v.Storage] || a.c.MinEvictee.Cut
		}
	}
	a.step++
	a.proceed()
}

// read judges the inputs of an operator, and returns its value.
func (a *audit) read(number int32, again bool) uint64 {
	value := uint64(number)
	for _, t := range a.s.Ops[number].Args {
		storage := a.s.Tensors[t].Storage
		switch {
		case again && a.gone[storage]:
			a.breaks(MGone, "operator %d runs again and reads tensor %d, which was freed for good", number, t)
		case !a.defined[t] || !a.resident[storage]:
			a.breaks(MContents, "operator %d reads tensor %d, which is not resident", number, t)
		case a.away[storage]:
			a.breaks(MContents, "operator %d reads tensor %d, which is on the host", number, t)
		case a.newest[storage] != a.shows[t]:
			a.breaks(MContents, "operator %d reads tensor %d, which was overwritten", number, t)
		}
		a.copies.now = max(a.copies.now, a.copies.end[storage])
		value = workload.NewRand(value ^ a.value[t]).Next()
	}
	return value
}

// define makes an output resident.
func (a *audit) define(t remat.Tensor, op *remat.Op, value uint64, again bool) {
	storage := a.s.Tensors[t].Storage
	if !again {
		a.value[t] = value
	} else if a.value[t] != value {
		a.breaks(MContents, "tensor %d has another value when it is computed again", t)
	}
	if a.gone[storage] && a.c.Liveness != "banish" {
		return // discarded; under banish it returns, as in the simulator
	}
	a.defined[t], a.resident[storage] = true, true
}

// sum returns the bytes of resident storages in memory.
func (a *audit) sum() (n device.Size) {
	for s, is := range a.resident {
		if is && !a.away[s] {
			n += a.s.Storages[s].Size
		}
	}
	return n
}

// swapped returns the bytes that were swapped out so far.
func (a *audit) swapped() int64 { return a.result.EvictedBytes[remat.Swapped] }

// OnEvict implements remat.Observer.
func (a *audit) OnEvict(storage int32, why remat.Cause) {
	if a.found != nil {
		return
	}
	a.events = append(a.events, event{"evicted", storage})
	a.result.Evictions[why]++
	a.result.EvictedBytes[why] += int64(a.s.Storages[storage].Size)
	if why == remat.Swapped {
		a.swapOut(storage)
		return
	}
	switch {
	case !a.resident[storage]:
		a.breaks(MCounts, "storage %d is evicted and was not resident", storage)
	case a.kept[storage] && a.refs[storage] > 0 && why != remat.Banished:
		a.breaks(MKept, "storage %d is evicted and cannot be computed again", storage)
	case why == remat.Dropped && !a.isDropped(storage):
		a.breaks(MDrop, "storage %d is dropped by no step", storage)
	}
	if a.away[storage] {
		a.copies.goneBytes += int64(a.s.Storages[storage].Size)
	}
	a.resident[storage], a.away[storage], a.copies.end[storage] = false, false, 0
	for t, v := range a.s.Tensors {
		if v.Storage == storage {
			a.defined[t] = false
		}
	}
}

// OnForget implements remat.Observer.
func (a *audit) OnForget(storage int32) {
	if a.found != nil {
		return
	}
	a.events = append(a.events, event{"gone", storage})
	switch {
	case a.resident[storage]:
		a.breaks(MGone, "storage %d is freed for good and resident", storage)
	case a.gone[storage]:
		a.breaks(MGone, "storage %d is freed for good twice", storage)
	case a.refs[storage] > 0:
		a.breaks(MGone, "storage %d is freed for good and has %d references", storage, a.refs[storage])
	}
	a.gone[storage] = true
}

// end compares the account with the result of the run.
func (a *audit) end(res remat.Result) {
	a.result.Clock++ // it starts at 1
	counted := func(r remat.Result) remat.Result {
		return remat.Result{Clock: r.Clock, ModelTime: r.ModelTime, RematTime: r.RematTime, Runs: r.Runs, Remats: r.Remats,
			Evictions: r.Evictions, EvictedBytes: r.EvictedBytes}
	}
	a.result.Clock += res.Swaps.Stall
	switch {
	case res.Peak < a.result.Peak || res.Peak > a.result.Peak && a.swapped() == 0:
		a.breaks(MBytes, "the peak is %d bytes, the result has %d", a.result.Peak, res.Peak)
	case counted(a.result) != counted(res):
		a.breaks(MCounts, "the events count %+v, the result has %+v", counted(a.result), counted(res))
	case res.Verdict == remat.OK && a.step < len(a.s.Steps):
		a.breaks(MCounts, "the run is complete and operator %d has not run", a.s.Steps[a.step].Of)
	case res.Verdict == remat.OK && a.c.Liveness == "detach" && !a.planned():
		a.judgeDetached()
	case res.Verdict == remat.OOM:
		a.judgeRefusal()
	}
	a.judgeSwaps(res)
	a.result = res
}
