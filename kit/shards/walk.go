package shards

import "github.com/vramyard/vramyard/alloc"

// run is the chunks of one strategy that Walk has not yielded yet.
type run struct{ from, to int }

// Walk yields the chunks of every strategy in the order of their addresses. It must be called with
// every lock held. It collects the chunks first, in a buffer that the next walk reuses.
func (s *Set) Walk(yield func(alloc.Chunk) bool) {
	if s.gather == nil {
		s.gather = func(c alloc.Chunk) bool {
			s.chunks = append(s.chunks, c)
			return true
		}
	}
	s.chunks, s.runs = s.chunks[:0], s.runs[:0]
	for _, p := range s.all {
		from := len(s.chunks)
		p.strategy.Walk(s.gather)
		s.runs = append(s.runs, run{from, len(s.chunks)})
	}
	for range s.chunks {
		low := -1
		for i, r := range s.runs {
			if r.from < r.to && (low < 0 || s.chunks[r.from].Addr < s.chunks[s.runs[low].from].Addr) {
				low = i
			}
		}
		if !yield(s.chunks[s.runs[low].from]) {
			return
		}
		s.runs[low].from++
	}
}
