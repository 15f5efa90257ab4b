package page

import "math"

// Pick is a selection of buckets.
type Pick struct {
	From  int // the first, a multiple of 1<<Shift
	To    int // one past the last
	Shift int // groups of 1<<Shift buckets are joined
}

// len returns the number of buckets after joining.
func (p Pick) len() int { return (p.To - p.From + 1<<p.Shift - 1) >> p.Shift }

// picked joins the values of each group of selected buckets.
func picked[T any](p Pick, list []T, join func(a, b T) T) []T {
	if list == nil {
		return nil
	}
	out := make([]T, p.len())
	for i := range out {
		from := p.From + i<<p.Shift
		out[i] = list[from]
		for _, v := range list[from+1 : min(from+1<<p.Shift, p.To)] {
			out[i] = join(out[i], v)
		}
	}
	return out
}

// higher returns the maximum, ignoring NaN.
func higher(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// lower returns the minimum, ignoring NaN.
func lower(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

func sum[T uint32 | float64](a, b T) T { return a + b }

// Pick returns the trace with the selected buckets. Its Grid still numbers all buckets.
func (t *Trace) Pick(p Pick) *Trace {
	c := *t
	c.Grid.Shift += p.Shift
	c.Bound = picked(p, t.Bound, higher)
	c.Times = picked(p, t.Times, func(_, last int64) int64 { return last })
	return &c
}

// Pick returns the picture with the selected buckets. Maxima and minima are kept.
func (r *Picture) Pick(p Pick) *Picture {
	c := *r
	for _, curve := range c.Curves.All() {
		*curve = Curve{picked(p, curve.Max, higher), picked(p, curve.Min, lower)}
	}
	for kind, n := range r.Calls {
		c.Calls[kind] = picked(p, n, sum)
	}
	c.DeviceTime, c.OOMs = picked(p, r.DeviceTime, sum), picked(p, r.OOMs, sum)
	return &c
}

// Coarse returns the finest selection of all buckets with no more groups than most.
func (g Grid) Coarse(most int) Pick {
	p := Pick{To: g.Len()}
	for p.len() > max(most, 1) {
		p.Shift++
	}
	return p
}
