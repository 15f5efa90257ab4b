package recall

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// The rules of growth, measured on the recorded traces. Small handles can be shared well, large
// ones take few calls. A program is young until its live bytes have risen twice from a valley.
const (
	youngPages     = 10  // pages of a handle while the program is young
	settledPages   = 24  // and later
	shareOfRequest = 64  // handles for a request have at least this part of it
	shareOfHeld    = 16  // and at most this part of the bytes held, by all pools
	shareOfLimit   = 128 // and of the limit, because near it every page counts
	shareAhead     = 32  // memory grows by at least this part, within the budget
	slackOfBudget  = 333 // the budget exceeds the expected demand by this part
)

// budget returns the bytes up to which memory grows rather than being aliased: the highest demand
// so far or in the forecast, and a little more.
func (a *pages) budget(request device.Size) device.Size {
	demand := a.demand.with(request)
	most := max(a.demand.peak, demand, a.watch.forecast(a.granted+request, max(a.demand.peak, demand)))
	return most + most/slackOfBudget
}

// extend adds a free chunk of n bytes to a window, for a request of some bytes. It maps new memory
// within the budget, and beyond it idle memory a second time, with new memory for the missing part.
func (a *pages) extend(request, n device.Size) error {
	budget := a.budget(request)
	at, need, err := a.homeFor(n)
	if err != nil {
		return err
	}
	idle := slices.ContainsFunc(a.handles, func(m handle) bool { return m.idle() })
	if a.held+need <= budget || !idle {
		ahead := min(a.pagesOf(a.held/shareAhead), max(budget, a.held)-a.held)
		ahead -= ahead % a.cfg.PageBytes
		err = a.grow(at, max(need, ahead), request)
		if err != nil && need < ahead {
			err = a.grow(at, need, request)
		}
		if err == nil || !idle {
			return err
		}
	}
	return a.alias(n, request)
}

// pagesOf returns n rounded up to whole pages.
func (a *pages) pagesOf(n device.Size) device.Size { return device.AlignUp(n, a.cfg.PageBytes) }

// homeFor returns the home window that needs the fewest bytes at its end for a free chunk of n
// bytes, and those bytes. A window that is mostly gaps does not grow, or a program that trims often
// would use up the addresses.
func (a *pages) homeFor(n device.Size) (at int32, need device.Size, err error) {
	at = -1
	for _, i := range a.order {
		w := &a.windows[i]
		missing := a.pagesOf(n - min(n, a.rest(w)))
		if w.kind == home && w.size-w.end >= missing && (at < 0 || missing < need) &&
			(2*w.gone <= w.end || len(a.order) == mostWindows) {
			at, need = i, missing
		}
	}
	if at < 0 {
		need = a.pagesOf(n)
		at, err = a.open(home, need)
	}
	return at, need, err
}

// rest returns the free bytes at the end of a window.
func (a *pages) rest(w *window) device.Size {
	if w.end == w.mapped && w.tail != noChunk && a.chunks[w.tail].state == free {
		return a.chunks[w.tail].size
	}
	return 0
}

// grow adds n bytes of memory to the end of a home window. Handles that are held but mapped nowhere
// come first.
func (a *pages) grow(at int32, n, request device.Size) error {
	var all []int32
	for j := range a.handles {
		if m := &a.handles[j]; n > 0 && m.loose() {
			all = append(all, int32(j))
			n -= min(n, m.size)
		}
	}
	if a.asked = n; !a.within(n) {
		return regions.ErrLimit
	}
	most := min(settledPages*a.cfg.PageBytes, a.front.held()/shareOfHeld)
	if a.watch.young() {
		most = min(most, youngPages*a.cfg.PageBytes)
	}
	if a.cfg.Limit != 0 && !a.front.span.Fits(most*shareOfLimit, a.cfg.Limit) {
		a.front.span.Pin(a.cfg.Limit)
		most = a.cfg.Limit / shareOfLimit
	}
	most = max(most, request/shareOfRequest, a.cfg.PageBytes)
	most -= most % a.cfg.PageBytes
	var err error
	for n > 0 && err == nil {
		var j int32
		if j, err = a.create(min(n, most)); err == nil {
			all = append(all, j)
			n -= a.handles[j].size
		}
	}
	a.asked = n
	if err == nil {
		err = a.attach(at, all)
	}
	if err != nil { // memory that the device keeps is retried with the next growth or trim
		for _, j := range all {
			if a.handles[j].loose() {
				_ = a.discard(j)
			}
		}
	}
	return err
}

// within reports whether n more bytes are within the limit.
func (a *pages) within(n device.Size) bool {
	return a.cfg.Limit == 0 || a.front.span.Fits(a.front.held()+n, a.cfg.Limit)
}

// create makes a handle without mappings and returns its row.
func (a *pages) create(n device.Size) (int32, error) {
	id, err := a.vm.CreateHandle(n)
	if err != nil {
		a.front.Stats.ReserveFailures++
		return 0, err
	}
	if len(a.spare) == 0 {
		a.spare = append(a.spare, int32(len(a.handles)))
		a.handles = append(a.handles, handle{})
	}
	j := a.spare[len(a.spare)-1]
	a.spare = a.spare[:len(a.spare)-1]
	m := &a.handles[j]
	*m = handle{id: id, size: n, in: m.in[:0], owner: nowhere}
	a.front.Stats.Reserves++
	a.held += n
	a.front.Stats.Forgotten += n
	a.front.Stats.PeakReserved = max(a.front.Stats.PeakReserved, a.front.held())
	return j, nil
}

// alias adds a free chunk of n bytes to an alias window: idle handles that the window does not map
// yet, and new ones. It chooses the window that takes the least new memory, then the fewest calls.
func (a *pages) alias(n, request device.Size) error {
	a.curb(n)
	a.sortIdle()
	best, fresh, calls := a.choose(-1, n)
	into := int32(-1)
	for _, i := range a.order {
		if w := &a.windows[i]; w.kind != alias || w.size-w.end < a.pagesOf(n) {
			continue
		}
		taken, f, c := a.choose(i, n)
		if f < fresh || f == fresh && c < calls {
			into, best, fresh, calls = i, taken, f, c
		}
	}
	at, need, err := a.homeFor(n)
	if err != nil {
		return err
	}
	if need <= fresh {
		return a.grow(at, need, request)
	}
	if fresh > 0 {
		if err := a.grow(at, fresh, request); err != nil {
			return err
		}
		a.sortIdle()
		best, _, _ = a.choose(into, n)
	}
	if into < 0 {
		into, err = a.open(alias, a.pagesOf(n))
	}
	if err == nil {
		err = a.attach(into, best)
	}
	if err != nil { // the device may still have memory
		return a.grow(at, need-fresh, request)
	}
	return nil
}

// sortIdle lists the idle handles, the largest first.
func (a *pages) sortIdle() {
	a.idle = a.idle[:0]
	for j := range a.handles {
		if a.handles[j].idle() {
			a.idle = append(a.idle, int32(j))
		}
	}
	slices.SortStableFunc(a.idle, func(x, y int32) int { return cmp.Compare(a.handles[y].size, a.handles[x].size) })
}

// choose returns idle handles that make a free chunk of n bytes at the end of a window, a new one
// if the row is negative: the largest ones, and last the smallest that suffices for the rest. It
// also returns the bytes that are missing, and the calls that it takes.
func (a *pages) choose(i int32, n device.Size) (taken []int32, missing device.Size, calls int) {
	if i < 0 {
		calls++
	} else {
		n -= min(n, a.rest(&a.windows[i]))
	}
	missing = a.pagesOf(n)
	last := gap
	for _, j := range a.idle {
		m := &a.handles[j]
		if slices.ContainsFunc(m.in, func(p place) bool { return p.window == i }) {
			continue
		}
		if m.size >= missing {
			last = j
			continue
		}
		if last != gap {
			break
		}
		taken = append(taken, j)
		missing -= m.size
	}
	if last != gap && missing > 0 {
		taken, missing = append(taken, last), 0
	}
	return taken, missing, calls + len(taken)
}
