package device

// Span is a set of capacities of a device, in bytes: those at which every comparison with the
// capacity so far would have had the same outcome. The zero value holds every capacity.
type Span struct {
	From  Size // smallest capacity
	Below Size // upper end, exclusive; 0: none
}

// Holds reports whether a capacity is in the span.
func (s Span) Holds(capacity Size) bool {
	return capacity >= s.From && (s.Below == 0 || capacity < s.Below)
}

// Fits reports whether n bytes are within a capacity, and removes the capacities for which it would
// report otherwise.
func (s *Span) Fits(n, capacity Size) bool {
	if n <= capacity {
		s.From = max(s.From, n)
		return true
	}
	if s.Below == 0 || n < s.Below {
		s.Below = n
	}
	return false
}

// Pin removes all capacities except one: a decision followed from its value.
func (s *Span) Pin(capacity Size) {
	s.From = max(s.From, capacity)
	if s.Below == 0 || capacity+1 < s.Below {
		s.Below = capacity + 1
	}
}

// Of returns the capacities for which a quantity that follows from them is in the span. It takes
// the quantity of 120 capacities.
//
// Precondition: the quantity does not fall when the capacity rises.
func (s Span) Of(quantity func(capacity Size) Size) Span {
	least := func(n Size) Size {
		low, high := Size(0), Size(1)<<60
		for low < high {
			if mid := low + (high-low)/2; quantity(mid) >= n {
				high = mid
			} else {
				low = mid + 1
			}
		}
		return low
	}
	if s.From != 0 {
		s.From = least(s.From)
	}
	if s.Below != 0 {
		s.Below = least(s.Below)
	}
	return s
}

// Common returns the capacities that are in both spans.
func (s Span) Common(t Span) Span {
	s.From = max(s.From, t.From)
	if s.Below == 0 || t.Below != 0 && t.Below < s.Below {
		s.Below = t.Below
	}
	return s
}
