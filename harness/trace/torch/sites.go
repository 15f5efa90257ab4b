package torch

import (
	"hash/fnv"
	"io"
	"math/bits"

	"github.com/vramyard/vramyard/internal/budget"
)

// sites returns the hash of every stack, by index; the hash of the empty stack is 0. It depends
// only on files, functions and lines, so a call site has the same hash in every recording of a
// program. O(bytes of strings + calls).
func (s *Snapshot) sites(memory *budget.Budget) ([]uint64, error) {
	if s.Calls.n < 2 { // without stacks
		return []uint64{0}, nil
	}
	texts, err := budget.Make[uint64](memory, len(s.Strings))
	if err != nil {
		return nil, err
	}
	defer budget.Release(memory, texts)
	h := fnv.New64a()
	for _, text := range s.Strings {
		h.Reset()
		_, _ = io.WriteString(h, text) // never fails
		texts = append(texts, h.Sum64())
	}
	sites, err := budget.Make[uint64](memory, s.Calls.n)
	if err != nil {
		return nil, err
	}
	sites = append(sites, 0)
	for id := 1; id < s.Calls.n; id++ { // a caller precedes its callees
		call := s.Calls.at(uint32(id))
		f := s.Frames[call.Frame]
		site := sites[call.Caller]
		for _, part := range [...]uint64{texts[f.File], texts[f.Function], uint64(f.Line)} {
			high, low := bits.Mul64(site^0x9e3779b97f4a7c15, part^0xd6e8feb86659fd93)
			site = bits.RotateLeft64(site, 23) ^ high ^ low
		}
		sites = append(sites, max(site, 1)) // 0 is reserved for the empty stack
	}
	return sites, nil
}
