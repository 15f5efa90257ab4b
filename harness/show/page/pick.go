package page

import "math"

// Pick chooses buckets.
type Pick struct {
	From  int // the first, a multiple of 1<<Shift
	To    int // the one behind the last
	Shift int // 1<<Shift buckets become one
}

// len returns how many buckets that leaves.
func (p Pick) len() int { return (p.To - p.From + 1<<p.Shift - 1) >> p.Shift }

// picked returns one value for each group of the buckets that are chosen.
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

// higher returns the higher of two values; what was not looked at gives way.
func higher(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// lower returns the lower one, likewise.
func lower(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

func sum[T uint32 | float64](a, b T) T { return a + b }

// Pick returns the trace with the buckets that are chosen. Its grid numbers them as if all were
// there.
func (t *Trace) Pick(p Pick) *Trace {
	c := *t
	c.Grid.Shift += p.Shift
	c.Bound = picked(p, t.Bound, higher)
	c.Times = picked(p, t.Times, func(_, last int64) int64 { return last })
	return &c
}

// Pick returns the run with the buckets that are chosen. The highest and lowest values stay what
// they are.
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

// Coarse returns the pick of all buckets that leaves at most so many.
func (g Grid) Coarse(most int) Pick {
	p := Pick{To: g.Len()}
	for p.len() > max(most, 1) {
		p.Shift++
	}
	return p
}
