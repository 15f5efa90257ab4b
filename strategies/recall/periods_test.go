package recall_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bestfit"
	"github.com/vramyard/vramyard/strategies/recall"
)

// call requests a block with an id, or with size 0 frees it.
type call struct {
	id   int
	size device.Size
}

// model generates the calls of a training run. Each layer has blocks of its own sizes; the sizes
// of activations follow a length.
type model struct {
	layers []layer
	ids    int
	states bool // the optimizer has its states
}

// layer has sizes in multiples of 256 bytes.
type layer struct{ weight, activation, score, workspace int }

// newModel returns a model of random layers. Equal layers repeat, as in a transformer.
func newModel(random *rand.Rand) *model {
	size := func(most int) int { return 1 + random.IntN(most) }
	m := &model{}
	for range 3 + random.IntN(6) {
		l := layer{weight: size(256), activation: size(64), score: size(32), workspace: size(256)}
		for range 1 + random.IntN(6) {
			m.layers = append(m.layers, l)
		}
	}
	return m
}

// request returns the call that requests a block.
func (m *model) request(size int) call {
	m.ids++
	return call{m.ids, device.Size(size) * 256}
}

// weights returns the calls that create the model.
func (m *model) weights() (calls []call) {
	for _, l := range m.layers {
		calls = append(calls, m.request(l.weight))
	}
	return calls
}

// step returns the calls of one iteration: forward, backward and optimizer. Activations grow with
// the length, scores with its square. The first iteration creates the states of the optimizer.
func (m *model) step(length int) (calls []call) {
	free := func(c call) { calls = append(calls, call{id: c.id}) }
	take := func(size int) call {
		c := m.request(size)
		calls = append(calls, c)
		return c
	}
	var kept [][]call
	for _, l := range m.layers {
		work := take(l.workspace * length)
		kept = append(kept, []call{take(l.activation * length), take(l.score * length * length)})
		free(work)
		out := take(l.activation * length)
		work = take(l.workspace)
		free(work)
		kept[len(kept)-1] = append(kept[len(kept)-1], out)
	}
	var gradients []call
	above := take(m.layers[0].activation * length)
	for k := range slices.Backward(m.layers) {
		l := m.layers[k]
		work := take(l.workspace * length)
		below := take(l.activation * length)
		for _, c := range kept[k] {
			free(c)
		}
		gradients = append(gradients, take(l.weight))
		free(work)
		free(above)
		above = below
	}
	free(above)
	for k, g := range gradients {
		n := int(g.size / 256)
		if !m.states {
			take(n)
			take(n)
		}
		work := take(n + k)
		free(g)
		free(work)
	}
	m.states = true
	return calls
}

// The kinds of deviations.
const (
	dropped = iota
	resized
	inserted
	kinds
)

// perturb drops and inserts blocks and changes sizes, each with a probability.
func (m *model) perturb(random *rand.Rand, calls []call, rate float64) []call {
	for kind := range kinds {
		calls = m.perturbBy(random, calls, rate, kind)
	}
	return calls
}

// perturbBy makes deviations of one kind with a probability for each request.
func (m *model) perturbBy(random *rand.Rand, calls []call, rate float64, kind int) (out []call) {
	missing := map[int]bool{}
	frees := map[int][]call{} // of inserted blocks, by index
	for i, c := range calls {
		out = append(out, frees[i]...)
		delete(frees, i)
		if c.size > 0 && random.Float64() < rate {
			switch kind {
			case dropped:
				missing[c.id] = true
			case resized:
				c.size = c.size/2 + 256*device.Size(random.IntN(1+int(c.size/256)))
			case inserted:
				extra := m.request(1 + random.IntN(64))
				out = append(out, extra)
				at := min(i+1+random.IntN(40), len(calls)-1)
				frees[at] = append(frees[at], call{id: extra.id})
			}
		}
		if !missing[c.id] {
			out = append(out, c)
		}
	}
	return append(out, frees[len(calls)-1]...)
}

// random returns calls without a period.
func (m *model) random(random *rand.Rand, n int) (calls []call) {
	var live []int
	for range n {
		if k := len(live); k > 0 && random.IntN(100) < k {
			at := random.IntN(k)
			calls = append(calls, call{id: live[at]})
			live[at] = live[k-1]
			live = live[:k-1]
			continue
		}
		c := m.request(1 + random.IntN(128))
		calls, live = append(calls, c), append(live, c.id)
	}
	for _, id := range live {
		calls = append(calls, call{id: id})
	}
	return calls
}

// pair is an allocator, and beside it a best fit by itself that gets the same calls.
type pair struct {
	t      *testing.T
	recall *recall.Allocator
	alone  *bestfit.Allocator
	start  [2]device.Addr
	live   map[int][2]alloc.Block
	top    device.Size // end of the highest block of the allocator so far
	mark   device.Size // the same of the best fit
	same   int         // blocks at the same place in both
}

func newPair(t *testing.T, c recall.Config) *pair {
	t.Helper()
	devices := [2]*sim.Device{}
	for k := range devices {
		d, err := sim.New(sim.Config{})
		require.NoError(t, err)
		devices[k] = d
	}
	p := &pair{t: t, live: map[int][2]alloc.Block{}}
	var err error
	p.recall, err = recall.NewRange(devices[0], c)
	require.NoError(t, err)
	p.alone, err = bestfit.New(devices[1], bestfit.Config{Limit: p.recall.Config().Limit})
	require.NoError(t, err)
	return p
}

// do makes a call on both. It returns the block of a request and whether it got a planned place.
func (p *pair) do(c call) (b alloc.Block, planned bool) {
	p.t.Helper()
	if c.size == 0 {
		both := p.live[c.id]
		require.NoError(p.t, p.recall.Free(both[0].Addr))
		require.NoError(p.t, p.alone.Free(both[1].Addr))
		delete(p.live, c.id)
		return b, false
	}
	before := p.recall.Planned()
	b, err := p.recall.Alloc(alloc.Request{Size: c.size})
	require.NoError(p.t, err)
	other, err := p.alone.Alloc(alloc.Request{Size: c.size})
	require.NoError(p.t, err)
	if p.start[0] == 0 {
		p.start = [2]device.Addr{b.Addr, other.Addr}
	}
	p.live[c.id] = [2]alloc.Block{b, other}
	if b.Addr.Sub(p.start[0]) == other.Addr.Sub(p.start[1]) && b.Size == other.Size {
		p.same++
	}
	p.mark = max(p.mark, other.Addr.Sub(p.start[1])+other.Size)
	return b, p.recall.Planned() > before
}

// guarded checks the guard for each call: a planned block ends at most at the highest end before,
// or a percentage above the highest end of the best fit by itself.
func (p *pair) guarded(calls []call) {
	p.t.Helper()
	for i, c := range calls {
		b, planned := p.do(c)
		if c.size == 0 {
			continue
		}
		end := b.Addr.Sub(p.start[0]) + b.Size
		if planned {
			bound := max(p.top, p.mark+p.mark/100*device.Size(p.recall.Config().Guard))
			require.LessOrEqual(p.t, end, bound, "call %d: %d bytes at %v", i, uint64(c.size), b.Addr)
		}
		p.top = max(p.top, end)
		if i%16 == 0 {
			require.NoError(p.t, p.recall.Check())
		}
	}
	require.NoError(p.t, p.recall.Check())
}
