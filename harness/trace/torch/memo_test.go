package torch

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackedMemoEqualsAPlainOne fills a memo as files do, and as no file does, beside a
// slice.
func TestPackedMemoEqualsAPlainOne(t *testing.T) {
	const places = 12 * memoPage
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m memo
		want := make([]uint32, places)
		put := func(at, word uint32) {
			m.page(at)[at%memoPage] = word
			want[at] = word
		}
		next := uint32(isEntry)<<kindShift | 5
		for at := range uint32(places) {
			switch k := rng.IntN(1 << (4 + seed%8)); {
			case k > 3:
				put(at, next)
				next++
			case k == 3:
				put(at, uint32(isEmpty)<<kindShift)
			case k == 2: // the place stays empty
			case k == 1:
				put(at, uint32(isStack)<<kindShift|rng.Uint32N(1000))
			default:
				put(rng.Uint32N(at+1), uint32(isText)<<kindShift|rng.Uint32N(1000))
			}
		}
		packed := 0
		for _, p := range m.pages {
			if p.plain == nil {
				packed++
			}
		}
		if seed%8 == 7 && seed < 8 {
			require.Positive(t, packed, "seed %d", seed)
		}
		for at, w := range want {
			v := m.at(uint32(at))
			require.Equal(t, w, uint32(v.x)|uint32(v.kind)<<kindShift, "seed %d, place %d", seed, at)
		}
	}
}
