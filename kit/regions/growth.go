package regions

// [Pool] is a [Set] with a growth policy: it chooses the size of the next region, and which regions
// without a live block return to the device. A [Policy] has five kinds:
//
//   - "fixed": regions of Region bytes; a larger request gets a region of its own;
//   - "doubling": each region is twice the last, the first has Region bytes; a released region
//     halves the next;
//   - "request": the size of the request, rounded up to a multiple of Region;
//   - "proportional": a sixteenth of the bytes held, at least Region, so the last region is at most
//     6 % of all;
//   - "whole": one region of the whole limit, or the largest that the device grants, to within
//     2 MiB.
//
// No region is smaller than its request, and none exceeds Limit. After a refusal the part beyond
// the request is halved until nothing is left of it. With Release, empty regions are released while
// they hold more than Keep bytes.

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// The kinds of a policy.
const (
	Fixed        = "fixed"
	Doubling     = "doubling"
	Request      = "request"
	Proportional = "proportional"
	Whole        = "whole"
)

// WholeLimit is the limit of a policy of kind Whole without Limit. It exceeds every card, so the
// device is the bound.
const WholeLimit = device.TiB

// proportion divides the bytes held into the size of the next region of kind Proportional; regions
// for single blocks do not count. A sixteenth bounds the waste of a nearly unused region at 6 %,
// and takes 183 regions from 256 KiB to 16 GiB.
const proportion = 16

// Policy determines the sizes of regions and when they are released. Sizes are bytes.
type Policy struct {
	Kind    string      // one of the kinds
	Region  device.Size // smallest region
	Limit   device.Size // limit of the bytes held; 0 for none, which Whole does not allow
	Release bool        // release empty regions
	Keep    device.Size // empty bytes to keep even with Release
	Quantum device.Size // regions are whole multiples of it; a power of two
}

// Check returns an error that names the first invalid field as the configuration of the strategy
// calls it.
func (p Policy) Check(strategy string) error {
	switch p.Kind {
	case Fixed, Doubling, Request, Proportional, Whole:
	default:
		return fmt.Errorf("%s: growth %q: want %q, %q, %q, %q or %q",
			strategy, p.Kind, Fixed, Doubling, Request, Proportional, Whole)
	}
	switch {
	case p.Region == 0 || p.Region%p.Quantum != 0:
		return fmt.Errorf("%s: region_bytes %d: want a multiple of %d", strategy, uint64(p.Region), uint64(p.Quantum))
	case p.Region > mostRegion:
		return fmt.Errorf("%s: region_bytes %d: want at most %v", strategy, uint64(p.Region), mostRegion)
	case p.Limit != 0 && p.Limit < p.Quantum:
		return fmt.Errorf("%s: limit %d: want at least %d", strategy, uint64(p.Limit), uint64(p.Quantum))
	case p.Limit > mostRegion:
		return fmt.Errorf("%s: limit %d: want at most %v", strategy, uint64(p.Limit), mostRegion)
	case p.Keep != 0 && !p.Release:
		return fmt.Errorf("%s: keep_bytes %d: needs release", strategy, uint64(p.Keep))
	case p.Release && p.Kind == Whole:
		return fmt.Errorf("%s: release: not used with growth %q", strategy, Whole)
	}
	return nil
}

// mostRegion bounds regions and limits, so that sums and roundings of a few of them do not
// overflow.
const mostRegion device.Size = 1 << 60

// Pool holds the regions of a strategy under a policy. Use [NewPool].
type Pool struct {
	Set
	policy Policy
	stats  *alloc.Stats
	next   device.Size // kind Doubling: size of the next region
	empty  device.Size // bytes of regions without a live block
	asked  device.Size // bytes of the last reservation tried
	grown  device.Size // bytes of the regions from Grow that Drop has not released
	span   device.Span // limits with which every decision so far would have been the same
}

// NewPool returns an empty pool over src. It counts in stats and maintains Limit and NextRegion
// there.
//
// Precondition: the policy passes Check.
func NewPool(src device.Source, stats *alloc.Stats, p Policy) Pool {
	pool := Pool{Set: NewSet(src, stats), policy: p, stats: stats}
	stats.Limit = p.Limit
	pool.setNext(p.Region)
	return pool
}

// setNext sets the size of the next region of kind Doubling and updates NextRegion.
func (p *Pool) setNext(n device.Size) {
	p.next = n
	switch p.policy.Kind {
	case Fixed:
		p.stats.NextRegion = p.policy.Region
	case Doubling:
		p.stats.NextRegion = n
	}
}

// Preallocates reports whether the bytes held are independent of the demand.
func (p Policy) Preallocates() bool { return p.Kind == Whole }

// Empty returns the bytes of regions without a live block.
func (p *Pool) Empty() device.Size { return p.empty }

// Asked returns the bytes of the last reservation that Grow tried, 0 if the limit left no room.
func (p *Pool) Asked() device.Size { return p.asked }

// Grow reserves a region of least bytes or more, of the policy's size or the largest
// that the device grants, and enters it under a label as empty. It makes at most 64 device calls.
//
// The error is [ErrLimit] if the limit leaves no room or the single region of kind Whole exists
// already, otherwise the device's. After an error only the counts of calls have changed.
//
// Precondition: 0 < least <= 1<<61.
func (p *Pool) Grow(least, align device.Size, label int32) (device.Region, error) {
	p.asked = 0
	least = device.AlignUp(least, p.policy.Quantum)
	if p.taken() || !p.Within(least) {
		return device.Region{}, ErrLimit
	}
	n := p.nextSize(least)
	if !p.Within(n) {
		p.span.Pin(p.policy.Limit)
		n = device.AlignDown(p.policy.Limit-p.stats.Reserved, p.policy.Quantum)
	}
	r, err := p.reserve(n, least, align, label)
	if err != nil {
		return device.Region{}, err
	}
	if p.exceeds(r) {
		return device.Region{}, ErrLimit
	}
	if p.policy.Kind == Doubling {
		p.setNext(min(2*p.asked, mostRegion))
	}
	p.empty += r.Size
	p.grown += r.Size
	return r, nil
}

// exceeds reports whether the device rounded a region up above the limit, and the region was
// released. A region that the device does not release is used, so that it is not lost.
func (p *Pool) exceeds(r device.Region) bool {
	return !p.Within(0) && p.Release(r.Addr) == nil
}

// GrowDirect reserves a region of n bytes for one block, regardless of the policy, and enters it
// under a label as occupied. The region does not influence the sizes of other regions. Errors are
// those of Grow.
func (p *Pool) GrowDirect(n, align device.Size, label int32) (device.Region, error) {
	p.asked = 0
	if p.taken() || !p.Within(n) {
		return device.Region{}, ErrLimit
	}
	p.asked = n
	r, err := p.Reserve(n, align, label)
	if err == nil && p.exceeds(r) {
		err = ErrLimit
	}
	return r, err
}

// DropDirect releases a region from GrowDirect whose block was freed. On error, the device's, the
// region stays and is empty like one from Grow.
func (p *Pool) DropDirect(a device.Addr) error {
	h, _ := p.Find(a)
	err := p.Release(a)
	if err != nil {
		p.empty += h.Size
		p.grown += h.Size
	}
	return err
}

// reserve requests n bytes, then less, down to least, until the device grants.
func (p *Pool) reserve(n, least, align device.Size, label int32) (device.Region, error) {
	for {
		p.asked = n
		r, err := p.Reserve(n, align, label)
		switch {
		case err == nil || n == least:
			return r, err
		case p.policy.Kind == Whole:
			return p.largestRegion(least, n, align, label)
		}
		n = least + device.AlignDown((n-least)/2, p.policy.Quantum)
	}
}

// largestRegion reserves the largest region that the device grants, from least bytes up to less
// than most, to a precision of wholeGrain. It halves the size until the device grants, then
// bisects; each grant is released before a larger one is tried.
func (p *Pool) largestRegion(least, most, align device.Size, label int32) (r device.Region, err error) {
	quantum := p.policy.Quantum
	for {
		p.asked = max(least, device.AlignDown(most/2, quantum))
		if r, err = p.Reserve(p.asked, align, label); err == nil {
			break
		}
		if p.asked == least {
			return device.Region{}, err
		}
		most = p.asked
	}
	held := true
	for most-p.asked > max(quantum, wholeGrain) {
		if held && p.Release(r.Addr) != nil {
			return r, nil // the device does not release it, so it is used
		}
		n := device.AlignDown(p.asked+(most-p.asked)/2, quantum)
		larger, refused := p.Reserve(n, align, label)
		if held = refused == nil; held {
			p.asked, r = n, larger
		} else {
			most = n
		}
	}
	if !held {
		return p.Reserve(p.asked, align, label)
	}
	return r, nil
}

// wholeGrain is the precision with which kind Whole finds the size of the device: the page size of
// drivers.
const wholeGrain = 2 * device.MiB

// taken reports whether the single region of kind Whole exists.
func (p *Pool) taken() bool { return p.policy.Kind == Whole && p.grown > 0 }

// Within reports whether the limit leaves room for n more bytes.
func (p *Pool) Within(n device.Size) bool {
	return p.policy.Limit == 0 || p.span.Fits(p.stats.Reserved+n, p.policy.Limit)
}

// CapacitySpan returns the limits with which the pool would have made the same calls so far.
func (p *Pool) CapacitySpan() device.Span { return p.span }

// nextSize returns the policy's size for a region. least is the fewest bytes that serve.
func (p *Pool) nextSize(least device.Size) device.Size {
	switch p.policy.Kind {
	case Fixed:
		return max(least, p.policy.Region)
	case Doubling:
		return max(least, p.next)
	case Proportional:
		least = max(least, p.grown/proportion)
	case Whole:
		return 2 * mostRegion
	}
	return (least + p.policy.Region - 1) / p.policy.Region * p.policy.Region
}

// Occupied records the first live block of an empty region of size bytes.
func (p *Pool) Occupied(size device.Size) { p.empty -= size }

// Vacated records that a region of size bytes has lost its last live block. It reports whether the
// region should be released, for which the caller calls Drop.
func (p *Pool) Vacated(size device.Size) (drop bool) {
	p.empty += size
	return p.policy.Release && p.empty > p.policy.Keep
}

// Drop releases an empty region. If the device refuses, its error is returned and the region stays.
//
// Precondition: a region without a live block starts at a.
func (p *Pool) Drop(a device.Addr) error {
	h, _ := p.Find(a)
	if err := p.Release(a); err != nil {
		return err
	}
	p.empty -= h.Size
	p.grown -= h.Size
	if p.policy.Kind == Doubling { // repeated release and growth must not double forever
		p.setNext(max(p.policy.Region, device.AlignDown(p.next/2, p.policy.Quantum)))
	}
	return nil
}
