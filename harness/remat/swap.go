package remat

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Swaps summarises the copies of a run to the host and back. Every storage that was copied to the
// host came back, kept its memory because it was read before the copy had ended, was discarded
// because the program released or dropped it, or is on the host at the end.
type Swaps struct {
	Possible       bool        `json:"-"`               // victims may be swapped
	Out            int         `json:"out_count"`       // storages copied to the host
	OutBytes       int64       `json:"out_bytes"`       // their bytes
	Back           int         `json:"back_count"`      // storages copied back
	BackBytes      int64       `json:"back_bytes"`      // their bytes
	KeptBytes      int64       `json:"kept_bytes"`      // bytes read before their copy to the host had ended
	DiscardedBytes int64       `json:"discarded_bytes"` // bytes released or dropped away from memory
	EndBytes       int64       `json:"end_bytes"`       // bytes on the host at the end
	Stall          int64       `json:"stall_ns"`        // ns that operators waited for copies
	HostPeak       device.Size `json:"host_peak_bytes"` // most bytes on the host at once
}

// way is a rule for how victims are evicted.
type way uint8

const (
	dropAlways    way = iota // recompute them
	swapAlways               // copy them to the host, except for storages without references
	swapIfCheaper            // whichever is expected to take less time
)

// swapConfig is the part of a heuristic that concerns the host.
type swapConfig struct {
	way  way
	link uint64      // bytes per second in each direction; 0: infinite
	host device.Size // capacity of the host; 0: unlimited
}

// place is the location of the contents of a resident storage.
type place uint8

const (
	inMemory  place = iota
	leaving         // being copied to the host, memory not yet free
	onHost          // without memory
	returning       // being copied back, into memory that it has
)

// swapper copies storages to the host and back. An engine for each direction copies one storage at
// a time while operators run. For heuristics and liveness, a storage on the host is resident: its
// tensors are defined and need no operator to come back.
//
// Storages that an operator is about to read are copied back first. Others are copied back while
// an operator runs, as late as the next read in the schedule permits, into memory that is free.
type swapper struct {
	swapConfig
	future
	elapsed   []int64 // by step: ns of the operators of the steps before it
	places    []place // by storage
	out, back engine
	leaving   device.Size // memory held by copies alone
	held      device.Size // bytes on the host
	hosted    pool        // storages on the host
	fixed     pool        // pinned storages in memory that are not locked otherwise
	ahead     bool        // victims are chosen before memory is needed
	timed     bool        // the heuristic divides a time of recomputation
	chains    chains
	counted   marks        // storages on the host that recompute has counted
	fetched   []OwnedBlock // inputs of the operator about to run that come back
	list      []int32      // scratch for candidates
}

// engine copies storages in one direction, in the order of requests.
type engine struct {
	queue []copying
	ready int64 // clock at which the last copy ends
}

// copying is a storage that is being copied. An abandoned one, none32, only holds its block.
type copying struct {
	storage int32
	size    device.Size
	block   alloc.Block
	end     int64 // clock
}

func newSwapper(r *runner, c swapConfig) *swapper {
	n := len(r.s.Storages)
	w := &swapper{swapConfig: c, future: newFuture(r, Compute), elapsed: make([]int64, len(r.s.Steps)),
		places: make([]place, n),
		hosted: newPool(n, false), fixed: newPool(n, false), counted: marks{seen: make([]uint32, n)},
		timed: strings.HasPrefix(r.h.dividend, "c")}
	sum := int64(0)
	for i, step := range r.s.Steps {
		if w.elapsed[i] = sum; step.Kind == Compute {
			sum += r.s.Ops[step.Of].Cost
		}
	}
	return w
}

// copyTime returns the time to copy a storage in one direction.
func (w *swapper) copyTime(s int32) int64 {
	if w.link == 0 {
		return 0
	}
	return transfer(int64(w.r.s.Storages[s].Size), w.link)
}

// start adds a copy that begins now or when the engine is ready.
func (w *swapper) start(e *engine, s int32) {
	e.ready = max(e.ready, w.r.clock) + w.copyTime(s)
	e.queue = append(e.queue, copying{s, w.r.s.Storages[s].Size, w.r.stores[s].block, e.ready})
}

// settle applies the copies that have ended. It reports whether one of them freed memory or made a
// storage evictable.
func (w *swapper) settle() (changed bool) {
	for {
		e := &w.out
		if len(e.queue) == 0 || len(w.back.queue) > 0 && w.back.queue[0].end < e.queue[0].end {
			e = &w.back
		}
		if len(e.queue) == 0 || e.queue[0].end > w.r.clock {
			return changed
		}
		c := e.queue[0]
		e.queue, changed = e.queue[1:], true
		switch {
		case e == &w.back && c.storage != none32:
			w.places[c.storage] = inMemory
			w.held -= c.size
			w.r.admit(c.storage)
			continue
		case c.storage != none32:
			w.places[c.storage] = onHost
			w.hosted.add(c.storage)
		}
		w.leaving -= c.size
		w.r.mem.Free(c.block)
	}
}

// stall waits until the clock reaches a time.
func (w *swapper) stall(until int64) {
	if wait := until - w.r.clock; wait > 0 {
		w.r.clock = until
		w.r.res.Swaps.Stall += wait
	}
	w.settle()
}

// await waits for the first copy of an engine. It returns false if there is none.
func (w *swapper) await(e *engine) bool {
	if w.settle() {
		return true
	}
	if len(e.queue) == 0 {
		return false
	}
	w.stall(e.queue[0].end)
	return true
}

// swapOut begins the copy of a storage to the host.
func (w *swapper) swapOut(s int32) {
	r, size := w.r, w.r.s.Storages[s].Size
	r.pool.drop(s)
	w.fixed.drop(s)
	w.places[s] = leaving
	r.used -= size
	w.leaving += size
	w.held += size
	w.start(&w.out, s)
	r.vacated = append(r.vacated, r.stores[s].block)
	sum := &r.res.Swaps
	sum.Out++
	sum.OutBytes += int64(size)
	sum.HostPeak = max(sum.HostPeak, w.held)
	r.countEviction(s, Swapped)
}

// discard gives up the contents of a resident storage that is away from memory. It returns false
// if the storage is in memory.
func (w *swapper) discard(s int32) bool {
	size := w.r.s.Storages[s].Size
	switch w.places[s] {
	case inMemory:
		w.fixed.drop(s)
		return false
	case onHost:
		w.hosted.drop(s)
	case leaving:
		w.out.abandon(s)
	case returning:
		w.back.abandon(s)
		w.r.used -= size
		w.leaving += size
	}
	if w.places[s] != returning { // which counts as back
		w.r.res.Swaps.DiscardedBytes += int64(size)
	}
	w.places[s] = inMemory
	w.held -= size
	return true
}

// abandon makes the copy of a storage hold its block and nothing else.
func (e *engine) abandon(s int32) {
	e.queue[slices.IndexFunc(e.queue, func(c copying) bool { return c.storage == s })].storage = none32
}

// keep ends the copies to the host of an operator's inputs: their memory is not free yet. It
// returns the bytes of the inputs that have to come back.
func (w *swapper) keep(inputs []Tensor) (missing device.Size) {
	w.settle()
	w.fetched = w.fetched[:0]
	for i, t := range inputs {
		s := w.r.s.Tensors[t].Storage
		size := w.r.s.Storages[s].Size
		switch w.places[s] {
		case leaving:
			w.out.queue = slices.DeleteFunc(w.out.queue, func(c copying) bool { return c.storage == s })
			w.places[s] = inMemory
			w.r.used += size
			w.leaving -= size
			w.held -= size
			w.r.res.Swaps.KeptBytes += int64(size)
			w.r.returned(s, false)
		case onHost:
			if !slices.ContainsFunc(inputs[:i], func(o Tensor) bool { return w.r.s.Tensors[o].Storage == s }) {
				missing += size
			}
		}
	}
	return missing
}

// fetch allocates memory for the inputs on the host and begins to copy them back.
func (w *swapper) fetch(inputs []Tensor) bool {
	for _, t := range inputs {
		s := w.r.s.Tensors[t].Storage
		if w.places[s] != onHost {
			continue
		}
		size := w.r.s.Storages[s].Size
		b, ok := w.r.allocate(size, ownerOf(s))
		if !ok {
			return false
		}
		w.fetched = append(w.fetched, OwnedBlock{ownerOf(s), size, b})
		w.swapBack(s, b)
	}
	return true
}

func (w *swapper) swapBack(s int32, b alloc.Block) {
	size := w.r.s.Storages[s].Size
	w.hosted.drop(s)
	w.places[s] = returning
	w.r.used += size
	w.r.stores[s].block = b
	w.start(&w.back, s)
	w.r.res.Swaps.Back++
	w.r.res.Swaps.BackBytes += int64(size)
	w.r.returned(s, true)
}

// awaitInputs waits until the inputs of an operator are in memory.
func (w *swapper) awaitInputs(inputs []Tensor) {
	for _, t := range inputs {
		for w.places[w.r.s.Tensors[t].Storage] == returning {
			w.await(&w.back)
		}
	}
}

// prefetch begins the copies that would be late if they began after an operator of this cost, and
// that find free memory. The storage read next comes first.
func (w *swapper) prefetch(cost int64) {
	until := w.r.clock + cost
	if w.hosted.n == 0 || w.back.ready >= until {
		return
	}
	type read struct {
		storage int32
		latest  int64 // clock
	}
	var reads []read
	for _, s := range w.hosted.list() {
		if in, ok := w.nextRead(s); ok {
			reads = append(reads, read{s, w.r.clock + in})
		}
	}
	slices.SortFunc(reads, func(a, b read) int {
		return cmp.Or(cmp.Compare(a.latest, b.latest), cmp.Compare(a.storage, b.storage))
	})
	next := int64(math.MaxInt64)
	for i := len(reads) - 1; i >= 0; i-- { // each copy ends before the next one begins
		next = min(reads[i].latest, next) - w.copyTime(reads[i].storage)
		reads[i].latest = next
	}
	for _, one := range reads {
		if one.latest >= until || w.back.ready >= until {
			return
		}
		b, ok := w.r.mem.Alloc(w.r.s.Storages[one.storage].Size, ownerOf(one.storage))
		if !ok {
			return
		}
		w.r.stores[one.storage].access = w.r.clock // otherwise it would be the next victim
		w.swapBack(one.storage, b)
	}
}

// nextRead returns the time of the operators from now to the step that next reads a storage, or
// false if none does.
func (w *swapper) nextRead(s int32) (in int64, ok bool) {
	step := w.nextStep(s)
	if step == none32 {
		return 0, false
	}
	return w.elapsed[step] - w.elapsed[w.r.step], true
}

// inMemory reports whether the contents of a storage are in memory, and not on their way.
func (r *runner) inMemory(s int32) bool {
	return r.stores[s].resident && (r.swap == nil || r.swap.places[s] == inMemory)
}

// price returns the time that operators are expected to wait if a storage is swapped out: for
// memory until the copy ends, unless victims are chosen ahead, and for the copy back as far as it
// cannot be hidden before the next read. It is at least 1 ns, so that size and staleness decide
// among swaps that cost nothing.
func (w *swapper) price(s int32) int64 {
	now := w.r.clock
	gone := max(w.out.ready, now) + w.copyTime(s)
	price := int64(0)
	if !w.ahead {
		price = gone - now
	}
	if in, ok := w.nextRead(s); ok {
		price += max(0, max(gone, w.back.ready)+w.copyTime(s)-(now+price+in))
	}
	return max(price, 1)
}

// recompute returns the time of the operators that would have to run to define the tensors of a
// storage again, and of the copies that they would wait for.
func (w *swapper) recompute(s int32) (sum int64) {
	r := w.r
	w.counted.reset()
	more := false
	for t := r.stores[s].first; t != none; t = r.nextView[t] {
		if !r.defined[t] {
			continue
		}
		w.chains.eachOp(r, t, more, func(op *Op, of Tensor) {
			sum += op.Cost
			for _, p := range r.live.parents(of) {
				if in := r.s.Tensors[p].Storage; w.places[in] == onHost && w.counted.visit(in) {
					sum += w.copyTime(in)
				}
			}
		})
		more = true
	}
	return sum
}

// swaps reports whether a victim is swapped out, not dropped.
func (w *swapper) swaps(s int32) bool {
	switch {
	case w.fixed.has(s):
		return true
	case w.way == dropAlways || !w.worth(s):
		return false
	}
	return w.way == swapAlways || w.price(s) < w.recompute(s)
}

// worth reports whether the host has room for a storage that the program can still read.
func (w *swapper) worth(s int32) bool {
	size := w.r.s.Storages[s].Size
	return size > 0 && w.r.stores[s].refs > 0 && w.hasRoom(size)
}

// worthMoving reports whether a pinned storage is large enough to be evicted at all.
func (w *swapper) worthMoving(s int32) bool {
	of := &w.r.s.Storages[s]
	return of.Size > 0 && !w.r.small(of.Root)
}

func (w *swapper) hasRoom(size device.Size) bool { return w.host == 0 || w.held+size <= w.host }

// cost returns the cost of evicting a storage in the cheaper of the ways that are permitted, where
// dropping it costs drop.
func (w *swapper) cost(s int32, drop int64) int64 {
	switch {
	case w.fixed.has(s):
		return w.price(s)
	case w.way == dropAlways || !w.worth(s):
		return drop
	case w.way == swapAlways:
		return w.price(s)
	}
	return min(drop, w.price(s))
}

// evictable reports whether a storage in the pools may be a victim.
func (w *swapper) evictable(s int32) bool {
	if w.r.pool.has(s) {
		return w.way != swapAlways || w.r.stores[s].refs == 0 || w.worth(s)
	}
	return w.way != dropAlways && w.fixed.has(s) && w.hasRoom(w.r.s.Storages[s].Size)
}

// candidates returns the storages that may be evicted, valid until the next call.
func (w *swapper) candidates() []int32 {
	w.list = append(append(w.list[:0], w.r.pool.list()...), w.fixed.list()...)
	w.list = slices.DeleteFunc(w.list, func(s int32) bool { return !w.evictable(s) })
	return w.list
}

// end frees the memory that only copies under way hold, and counts the bytes on the host.
func (w *swapper) end() {
	for _, e := range []*engine{&w.out, &w.back} {
		for _, c := range e.queue {
			if e == &w.out || c.storage == none32 {
				w.r.mem.Free(c.block)
			}
		}
	}
	for s, at := range w.places {
		if at == leaving || at == onHost {
			w.r.res.Swaps.EndBytes += int64(w.r.s.Storages[s].Size)
		}
	}
}
