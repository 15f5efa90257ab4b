package remat

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// mgeEpsilon keeps costs and staleness above 0, and the units give them the magnitudes of
// MegEngine's score.
const (
	mgeEpsilon = 1e-3
	mgeSecond  = 1e8     // bytes moved per unit of the score's clock
	mgeMilli   = 1e6     // nanoseconds per unit of the score's clock, with measured time
	mgeSize    = 1 << 20 // bytes per unit of size
)

// mge is MegEngine's score. The cost of an operator is the number of bytes that it reads and
// writes. They also advance a clock of their own, which measures staleness. With score.measured,
// cost and clock are the measured time instead.
//
//	(b + neighbors·N + ε)^time · again^k / (((m + free·f) / 2^20)^size · (a + ε)^stale)
//
// [Symbols] explains the letters, [ScoreSettings] the words. QuirkNoOwn leaves out b.
type mge struct {
	components
	score       mgeScore
	now         float64   // the score's clock
	access      []float64 // by storage: time of its last use or restore
	remats      []int     // by storage: number of recomputations
	againPowers []float64 // powers of mgeScore.again
}

// newMge returns MegEngine's score with these settings.
func newMge(score mgeScore) func(*runner) scorer {
	return func(r *runner) scorer {
		n := len(r.stores)
		price := bytesMoved
		if score.measured {
			price = func(_ *runner, op *Op) float64 { return float64(op.Cost) }
		}
		return &mge{components: newComponents(r, r.c.Quirks, price), score: score,
			access: make([]float64, n), remats: make([]int, n), againPowers: []float64{1}}
	}
}

// bytesMoved returns the bytes an operator reads and writes. A repeated argument counts each time;
// a view counts as its whole storage.
func bytesMoved(r *runner, op *Op) float64 {
	sum := float64(op.OutputBytes)
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
	unit := mgeSecond
	if m.score.measured {
		unit = mgeMilli
	}
	m.now += m.opCost(m.r, op) / unit
	for t := range op.outputs() {
		s := m.r.s.Tensors[t].Storage
		if again && m.r.s.Storages[s].Root == t && m.quirks&QuirkUncounted == 0 {
			m.remats[s]++
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
	size := float64(m.r.s.Storages[s].Size)
	if size == 0 {
		return math.Inf(1), 0 // evicting it frees nothing
	}
	if m.score.free != 0 {
		size += m.score.free * float64(m.free(s))
	}
	for len(m.againPowers) <= m.remats[s] {
		m.againPowers = append(m.againPowers, m.againPowers[len(m.againPowers)-1]*m.score.again)
	}
	cost := m.score.neighbors * m.neighborCost(s)
	if m.quirks&QuirkNoOwn == 0 {
		cost += m.ownCost[s]
	}
	over := math.Pow(cost+mgeEpsilon, m.score.time) * m.againPowers[m.remats[s]]
	under := math.Pow(size/mgeSize, m.score.size) * math.Pow(m.now-m.access[s]+mgeEpsilon, m.score.stale)
	return over / under, 0
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
