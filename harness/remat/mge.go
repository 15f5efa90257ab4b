package remat

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// The parameters of MegEngine's score, which it never varies.
const (
	mgeEpsilon = 1e-3   // added to costs and to times, so that none is 0
	mgeAgain   = 1.0001 // what a score is multiplied by for each time that the tensor was made again
	mgeSecond  = 1e8    // bytes moved in one unit of the clock
	mgeSize    = 1 << 20
)

// mge is MegEngine's score. The cost of an operator is the bytes that it reads and writes; they
// move a clock of its own, and time is not asked for.
//
//	(N + ε) · ρ^again / ((bytes + free) / 2^20 · (now - used + ε))
//
// N is the cost of the components around, with the own cost unless QuirkNoOwn; free is the free
// bytes beside the block.
type mge struct {
	components
	credit bool
	now    float64
	access []float64 // by storage: when it was used or came last
	times  []int     // by storage: how often it was made again
	powers []float64 // of mgeAgain
}

// newMge returns MegEngine's score, with the free bytes beside a block if credit is true.
func newMge(credit bool) func(*runner) neighbourhood {
	return func(r *runner) neighbourhood {
		n := len(r.stores)
		return &mge{components: newComponents(r, r.c.Quirks, moved), credit: credit,
			access: make([]float64, n), times: make([]int, n), powers: []float64{1}}
	}
}

// moved returns the bytes that an operator reads and writes, each argument once for each time that
// it is given. Views read what they lie in.
func moved(r *runner, op *Op) float64 {
	sum := float64(op.Need)
	for _, a := range op.Args {
		sum += float64(r.s.Storages[r.s.Tensors[a].Storage].Size)
	}
	return sum
}

func (m *mge) used(op *Op) {
	for _, a := range op.Args {
		m.access[m.r.s.Tensors[a].Storage] = m.now
	}
}

func (m *mge) ran(op *Op, again bool) {
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
	for _, s := range m.r.fresh {
		m.access[s] = m.now
	}
	m.components.ran(op, again)
}

func (m *mge) rank(s int32) (score, tie float64) {
	bytes := m.r.s.Storages[s].Size
	if bytes == 0 {
		return math.Inf(1), 0 // nothing is won
	}
	if m.credit {
		bytes += m.free(s)
	}
	for len(m.powers) <= m.times[s] {
		m.powers = append(m.powers, m.powers[len(m.powers)-1]*mgeAgain)
	}
	cost := m.neighbours(s)
	if m.quirks&QuirkNoOwn == 0 {
		cost += m.own[s]
	}
	over := (cost + mgeEpsilon) * m.powers[m.times[s]]
	return over / (float64(bytes) / mgeSize * (m.now - m.access[s] + mgeEpsilon)), 0
}

// free returns the free bytes beside a storage, as MegEngine asks for them.
func (m *mge) free(s int32) device.Size {
	if m.r.around == nil {
		return 0
	}
	b := m.r.stores[s].block
	below, above := m.r.around.FreeNeighbours(b)
	if heads, ok := m.r.mem.(Touching); ok && m.quirks&QuirkHeads != 0 {
		below, above = heads.TouchingFree(b)
	}
	if m.quirks&QuirkUnaligned != 0 && b.Size != m.r.s.Storages[s].Size {
		above = 0
	}
	return below + above
}
