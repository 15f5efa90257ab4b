package remat

// pool is the storages that may be evicted, in the order in which they came. It is a ring
// through the storages' numbers with the end at their count, so that coming and going cost O(1).
type pool struct {
	next, prev []int32
	in         []bool
	n          int
}

func newPool(storages int) pool {
	p := pool{make([]int32, storages+1), make([]int32, storages+1), make([]bool, storages), 0}
	end := p.end()
	p.next[end], p.prev[end] = end, end
	return p
}

// end is the number that stands before the first and after the last storage.
func (p *pool) end() int32 { return int32(len(p.in)) }

// first returns the storage that has been in for the longest time, or end.
func (p *pool) first() int32 { return p.next[p.end()] }

// add puts a storage at the end, if it is not in yet.
func (p *pool) add(s int32) {
	if p.in[s] {
		return
	}
	end := p.end()
	last := p.prev[end]
	p.next[last], p.prev[s], p.next[s], p.prev[end] = s, last, end, s
	p.in[s] = true
	p.n++
}

// drop takes a storage out, if it is in.
func (p *pool) drop(s int32) {
	if !p.in[s] {
		return
	}
	p.next[p.prev[s]], p.prev[p.next[s]] = p.next[s], p.prev[s]
	p.in[s] = false
	p.n--
}
