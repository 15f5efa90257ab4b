package remat

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// The constants of MegEngine's score.
const (
	mgeEpsilon = 1e-3   // added to costs and to times to keep them above 0
	mgeAgain   = 1.0001 // factor of the score for each recomputation of the tensor
	mgeSecond  = 1e8    // bytes moved per unit of the clock
	mgeSize    = 1 << 20
)

// mge is MegEngine's score. The cost of an operator is the bytes it reads and writes, which also
// advance a clock of their own; measured time is not used.
//
//	(b + N + ε) · ρ^k / ((m + f) / 2^20 · (a + ε))
//
// [Symbols] explains the letters. QuirkNoOwn leaves out b.
type mge struct {
	components
	credit bool
	now    float64
	access []float64 // by storage: time of its last use or restore
	times  []int     // by storage: number of recomputations
	powers []float64 // powers of mgeAgain
}

// newMge returns MegEngine's score. Credit adds the adjacent free bytes to the size.
func newMge(credit bool) func(*runner) neighbourhood {
	return func(r *runner) neighbourhood {
		n := len(r.stores)
		return &mge{components: newComponents(r, r.c.Quirks, moved), credit: credit,
			access: make([]float64, n), times: make([]int, n), powers: []float64{1}}
	}
}

// moved returns the bytes an operator reads and writes. A repeated argument counts each time; a
// view counts as its whole storage.
func moved(r *runner, op *Op) float64 {
	sum := float64(op.Need)
	for _, a := range op.Args {
		sum += float64(r.s.Storages[r.s.Tensors[a].Storage].Size)
	}
	return sum
}

func (m *mge) onUse(op *Op) {
	for _, a := range op.Args {
		m.access[m.r.s.Tensors[a].Storage] = m.now
	}
}

func (m *mge) onRun(op *Op, again bool) {
	m.now += moved(m.r, op) / mgeSecond
	for t := range op.outputs() {
		s := m.r.s.Tensors[t].Storage
		if again && m.r.s.Storages[s].Root == t && m.quirks&QuirkUncounted == 0 {
			m.times[s]++
		}
		if !again {
			m.access[s] = m.now
		}
	}
	for _, s := range m.r.restored {
		m.access[s] = m.now
	}
	m.components.onRun(op, again)
}

func (m *mge) rank(s int32) (score, tie float64) {
	bytes := m.r.s.Storages[s].Size
	if bytes == 0 {
		return math.Inf(1), 0 // evicting it frees nothing
	}
	if m.credit {
		bytes += m.free(s)
	}
	for len(m.powers) <= m.times[s] {
		m.powers = append(m.powers, m.powers[len(m.powers)-1]*mgeAgain)
	}
	cost := m.neighbourCost(s)
	if m.quirks&QuirkNoOwn == 0 {
		cost += m.own[s]
	}
	over := (cost + mgeEpsilon) * m.powers[m.times[s]]
	return over / (float64(bytes) / mgeSize * (m.now - m.access[s] + mgeEpsilon)), 0
}

// free returns the free bytes adjacent to a storage, as MegEngine counts them.
func (m *mge) free(s int32) device.Size {
	if m.r.adjacent == nil {
		return 0
	}
	b := m.r.stores[s].block
	below, above := m.r.adjacent.FreeNeighbours(b)
	if heads, ok := m.r.mem.(AdjacentReporter); ok && m.quirks&QuirkHeads != 0 {
		below, above = heads.AdjacentFree(b)
	}
	if m.quirks&QuirkUnaligned != 0 && b.Size != m.r.s.Storages[s].Size {
		above = 0
	}
	return below + above
}
