package workload

// Settle returns the number of pairs of a churn over live blocks after which placement is in a
// steady state: each block is replaced twice on average. At most 400,000, to bound the untimed
// part.
func Settle(live int) int { return min(2*live, 400_000) }

// steadyParts returns the parts of w1.
func steadyParts(p Params) Parts { return Parts{Fill: p.Live, Churn: 2 * p.Pairs} }

// mixParts returns the parts of a mix, which settles first.
func mixParts(p Params) Parts {
	return Parts{Fill: p.Live, Settle: 2 * Settle(p.Live), Churn: 2 * p.Pairs}
}

// steady returns the generator of a steady state over p.Live blocks: it fills the slots in order,
// then replaces random blocks.
func steady(parts func(Params) Parts, sizes func(Params) Sizes) func(Params, *sink) {
	return func(p Params, s *sink) {
		rng, size := NewRand(p.Seed), sizes(p)
		for slot := range p.Live {
			if s.alloc(uint32(slot), size(rng)); s.done {
				return
			}
		}
		n := parts(p)
		for range (n.Settle + n.Churn) / 2 {
			slot := uint32(rng.Below(uint64(p.Live)))
			s.free(slot)
			if s.alloc(slot, size(rng)); s.done {
				return
			}
		}
	}
}
