package recall

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// certainty is how an expected size is known.
type certainty uint8

const (
	exactly   certainty = iota // a block of the same class was seen in this era, or the entry is of this era
	byRatio                    // the ratio of its class was seen in this era
	byPower                    // its class is a power of another class
	unchanged                  // nothing has changed so far in this era, or a long-lived block has the size
	unknown
)

// The parameters of eras.
const (
	fewBytes    = 4096 // sizes up to this are too coarse
	nearShare   = 256  // sizes within this part are near
	enoughLinks = 24   // allocations after which an era without a change is one without changes
	oddLinks    = 64   // one changed allocation in this number is no change
	oneStrike   = 32   // a single wrong size within this number of allocations is a resize
	maxClasses  = 1 << 16
	mostHalves  = 6  // exponents up to 3
	mostVotes   = 32 // that are counted
	dissent     = 4  // part of the votes for a prediction that may be against it
)

func near(a, b device.Size) bool { return max(a, b)-min(a, b) <= b/nearShare }

// history is the sizes of an entry and of the entries that it repeats, the latest first.
type history [3]device.Size

// ratios is the quotients of consecutive sizes of a history, in thousandths, 0 for no quotient.
// Blocks with the same ratios are a class: they grow and shrink together.
type ratios [2]int32

// seen is the size that followed a history in an era.
type seen struct {
	size device.Size
	at   int32
	votes
}

// share is the ratio that followed a class in an era.
type share struct {
	ratio float64
	votes
}

// votes counts the allocations that agreed and disagreed with a prediction, which is the first size
// of a history in the era. One wrong size does not refute a prediction that was right four times.
type votes struct{ yes, no uint8 }

// add counts a vote. At the limit a vote for the prediction forgives one against it.
func (v *votes) add(agrees bool) {
	switch {
	case !agrees:
		v.no = min(v.no+1, mostVotes)
	case v.yes < mostVotes:
		v.yes++
	case v.no > 0:
		v.no--
	}
}

// many reports whether there is no single result.
func (v votes) many() bool { return v.no*dissent > v.yes }

// eras predicts sizes. An era is a stretch of the run in which shapes do not change: a batch with a
// longer sequence begins another one. Sizes change by few ratios, so that the first blocks of an
// era predict the sizes of the others.
type eras struct {
	now     int32
	sizes   map[history]seen
	classes map[ratios]share
	long    map[device.Size]bool // sizes of long-lived blocks, which do not change with the shape
	widest  [3]int               // the most entries of the three so far

	driver  ratios  // class with the largest block whose size changed
	by      float64 // its ratio in this era
	largest device.Size
	links   int32
	changed int32

	struck  int32 // the last size that was wrong, and the class
	striker device.Size
}

func newEras() eras {
	return eras{
		sizes: map[history]seen{}, classes: map[ratios]share{}, long: map[device.Size]bool{}, struck: math.MinInt32 / 2,
	}
}

// begin begins an era.
func (e *eras) begin() {
	e.now++
	e.widen()
	clear(e.sizes)
	clear(e.classes)
	e.largest, e.links, e.changed = 0, 0, 0
}

// widen records the entries of the maps, which keep the memory of the most.
func (e *eras) widen() {
	for k, n := range [...]int{len(e.sizes), len(e.classes), len(e.long)} {
		e.widest[k] = max(e.widest[k], n)
	}
}

// historyOf returns the sizes of an entry and of the entries that it repeats.
func historyOf(w *watch, x int32) (h history) {
	for k := range h {
		if !w.known(x) {
			break
		}
		h[k] = w.of(x).size
		x = w.of(x).twin
	}
	return h
}

func (h history) ratios() (r ratios) {
	for k := range r {
		if h[k+1] == 0 {
			break
		}
		r[k] = int32(min(math.Round(1000*float64(h[k])/float64(h[k+1])), math.MaxInt32))
	}
	return r
}

// expect returns the size of the allocation that repeats an entry in this era.
func (e *eras) expect(w *watch, x int32) (device.Size, certainty) {
	if b := w.of(x); b.era == e.now {
		return b.size, exactly
	}
	return e.predict(historyOf(w, x))
}

// predict is expect for an entry of an earlier era, by its history.
func (e *eras) predict(h history) (device.Size, certainty) {
	n := h[0]
	if s, ok := e.sizes[h]; ok && !s.many() {
		return s.size, exactly
	}
	r := h.ratios()
	if s, ok := e.classes[r]; ok && !s.many() && r[0] != 0 {
		return scaled(n, s.ratio), byRatio
	}
	if e.largest > 0 && r[0] != 0 {
		if p, ok := r.power(e.driver); ok {
			return scaled(n, halfPower(e.by, p)), byPower
		}
	}
	if e.changed*oddLinks <= e.links && e.links >= enoughLinks || e.long[n] {
		return n, unchanged
	}
	return n, unknown
}

func scaled(n device.Size, by float64) device.Size {
	return device.AlignUp(device.Size(math.Round(min(float64(n)*by, float64(mostSize)))), quantum)
}

// halfPower returns x to the power of p halves. It multiplies, because a power function may round
// differently on another machine.
func halfPower(x float64, p int) float64 {
	y := 1.0
	for range p / 2 {
		y *= x
	}
	if p%2 == 1 {
		y *= math.Sqrt(x)
	}
	return y
}

// power returns the exponent, in halves up to 3, with which a class followed another one:
// activations grow with the length of a sequence, the scores of attention with its square.
func (r ratios) power(of ratios) (p int, ok bool) {
	for k := range r {
		if r[k] == 0 || of[k] == 0 {
			break
		}
		a, b := float64(r[k])/1000, float64(of[k])/1000
		if math.Abs(b-1) < 0.02 {
			if math.Abs(a-1) > 0.02 {
				return 0, false
			}
			continue
		}
		q := 0
		for q <= mostHalves && math.Abs(halfPower(b, q)-a) > 0.02*a {
			q++
		}
		if q > mostHalves || ok && q != p {
			return 0, false
		}
		p, ok = q, true
	}
	return p, ok
}

// note learns from an allocation that repeats an entry, and returns the size that was expected.
func (e *eras) note(w *watch, i, x int32) (want device.Size, how certainty) {
	b := w.of(i)
	n, old := b.size, w.of(x).size
	want, how = e.expect(w, x)
	h := historyOf(w, x)
	if how == exactly && want != n && n > fewBytes {
		if s, ok := e.sizes[h]; ok && i-s.at < (i-x)/8 {
			s.add(false)
			e.sizes[h] = s
			b.era = e.now
			return want, how
		}
		if i-e.struck > oneStrike || e.striker == old {
			e.struck, e.striker = i, old
			b.era = none
			return want, how
		}
		e.begin()
	}
	if len(e.sizes) >= maxClasses {
		e.begin()
	}
	b.era = e.now
	e.links++
	if n != old && n > fewBytes {
		e.changed++
	}
	s := e.sizes[h]
	if s.yes == 0 {
		s.size = n
	}
	s.at = i
	s.add(s.size == n)
	e.sizes[h] = s
	r := h.ratios()
	ratio := float64(n) / float64(old)
	c := e.classes[r]
	was := c
	if c.yes == 0 {
		c.ratio = ratio
	}
	if c.add(math.Abs(c.ratio-ratio) <= c.ratio/200); c != was {
		e.classes[r] = c
	}
	if r[0] != 0 && (r[0] < 980 || r[0] > 1020) && n > e.largest {
		e.driver, e.by, e.largest = r, ratio, n
	}
	return want, how
}
