package remat

import "slices"

// pool is the list of candidates for eviction, in the order in which they were added. Adding is
// O(1). Removal leaves a gap, which the method list closes.
//
// If swap is true, the last storage replaces a removed one, as in MegEngine. This is O(1) too, but
// the order is lost.
type pool struct {
	order []int32 // none32 marks a gap
	at    []int32 // by storage: index in order, or none32
	n     int     // number of storages
	swap  bool
}

func newPool(storages int, swap bool) pool {
	return pool{at: slices.Repeat([]int32{none32}, storages), swap: swap}
}

func (p *pool) has(s int32) bool { return p.at[s] != none32 }

// list returns all storages in order. The slice is valid until the next add or drop.
func (p *pool) list() []int32 {
	if len(p.order) == p.n {
		return p.order
	}
	kept := p.order[:0]
	for _, s := range p.order {
		if s != none32 {
			p.at[s] = int32(len(kept))
			kept = append(kept, s)
		}
	}
	p.order = kept
	return p.order
}

func (p *pool) add(s int32) {
	if p.has(s) {
		return
	}
	if len(p.order) > 2*p.n+64 {
		p.list() // closes the gaps, so that they cannot outnumber the storages for long
	}
	p.at[s] = int32(len(p.order))
	p.order = append(p.order, s)
	p.n++
}

func (p *pool) drop(s int32) {
	if !p.has(s) {
		return
	}
	p.order[p.at[s]] = none32
	p.n--
	switch last := p.order[p.n]; {
	case !p.swap:
	case last == none32: // s was the last
		p.order = p.order[:p.n]
	default:
		p.order[p.at[s]], p.at[last] = last, p.at[s]
		p.order = p.order[:p.n]
	}
	p.at[s] = none32
}
