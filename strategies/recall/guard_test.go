package recall_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/recall"
)

// seeds is the number of models that each test runs.
const seeds = 60

// growing are lengths of iterations that grow, so that the best fit needs more memory again and
// again, and plans are made.
var growing = []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}

// each runs a test on models.
func each(run func(random *rand.Rand, m *model)) {
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 0))
		run(random, newModel(random))
	}
}

// training returns the calls of a model and of iterations with lengths.
func training(m *model, lengths ...int) []call {
	calls := m.weights()
	for _, l := range lengths {
		calls = append(calls, m.step(l)...)
	}
	return calls
}

// TestBestFitUntilThePlan compares every block up to the first plan with the best fit by itself.
func TestBestFitUntilThePlan(t *testing.T) {
	planned := 0
	each(func(_ *rand.Rand, m *model) {
		p := newPair(t, recall.Config{})
		requests := 0
		for _, c := range training(m, growing...) {
			if p.recall.Recalled().Plans > 0 {
				planned++
				return
			}
			p.do(c)
			if c.size > 0 && p.recall.Recalled().Plans == 0 {
				requests++
				require.Equal(t, requests, p.same)
			}
		}
	})
	require.Greater(t, planned, seeds/4)
}

// TestGuard runs periods that repeat, that deviate by 0.1 and 10 %, and calls without a period. The
// memories forget.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		name  string
		least uint64 // blocks at planned places
		calls func(random *rand.Rand, m *model) []call
	}{
		{"periodic", 1000, func(_ *rand.Rand, m *model) []call { return training(m, growing...) }},
		{"perturbed by 0.1 %", 100, func(random *rand.Rand, m *model) []call {
			return m.perturb(random, training(m, growing...), 0.001)
		}},
		{"perturbed by 10 %", 0, func(random *rand.Rand, m *model) []call {
			return m.perturb(random, training(m, growing...), 0.1)
		}},
		{"perturbed at the end", 1000, func(random *rand.Rand, m *model) []call {
			calls := training(m, growing[:6]...)
			for _, l := range growing[6:] {
				calls = append(calls, m.perturb(random, m.step(l), 0.02)...)
			}
			return calls
		}},
		{"random", 0, func(random *rand.Rand, m *model) []call { return m.random(random, 1500) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var planned uint64
			each(func(random *rand.Rand, m *model) {
				p := newPair(t, recall.Config{Memory: 1 << (9 + random.IntN(6)), Guard: 1 + random.IntN(3)})
				p.guarded(c.calls(random, m))
				planned += p.recall.Planned()
			})
			require.GreaterOrEqual(t, planned, c.least)
		})
	}
}

// TestRecovers runs an iteration that deviates between iterations that do not. The next iteration
// returns to the period. In the two after it, over all models, at least a third as many blocks have
// planned places as without the deviation, and an eighth after another model.
func TestRecovers(t *testing.T) {
	after := func(deviate func(random *rand.Rand, m, other *model) []call) (planned uint64) {
		each(func(random *rand.Rand, m *model) {
			p := newPair(t, recall.Config{})
			p.guarded(training(m, 2, 3, 4, 5, 6, 7))
			p.guarded(deviate(random, m, &model{ids: 1 << 20, layers: newModel(random).layers, states: true}))
			p.guarded(m.step(9))
			before := p.recall.Planned()
			p.guarded(slices.Concat(m.step(10), m.step(11)))
			planned += p.recall.Planned() - before
		})
		return planned
	}
	steady := after(func(_ *rand.Rand, m, _ *model) []call { return m.step(8) })
	require.Greater(t, steady, uint64(500))
	perturbed := func(kind int) func(random *rand.Rand, m, _ *model) []call {
		return func(random *rand.Rand, m, _ *model) []call { return m.perturbBy(random, m.step(8), 0.01, kind) }
	}
	for name, deviate := range map[string]func(random *rand.Rand, m, other *model) []call{
		"drop": perturbed(dropped), "resize": perturbed(resized), "insert": perturbed(inserted),
		"another model": func(random *rand.Rand, m, other *model) []call {
			return slices.Concat(m.step(8), other.step(2), other.step(2))
		},
	} {
		n := after(deviate)
		share := uint64(3)
		if name == "another model" {
			share = 8
		}
		require.Greater(t, n, steady/share, name)
	}
}

// TestSameCallsSameResults runs the same calls twice.
func TestSameCallsSameResults(t *testing.T) {
	var planned uint64
	each(func(random *rand.Rand, m *model) {
		calls := m.perturb(random, training(m, growing...), 0.0005)
		first, second := newPair(t, recall.Config{}), newPair(t, recall.Config{})
		for _, c := range calls {
			b, _ := first.do(c)
			again, _ := second.do(c)
			require.Equal(t, b, again)
		}
		require.Equal(t, first.recall.Recalled(), second.recall.Recalled())
		planned += first.recall.Planned()
	})
	require.Greater(t, planned, uint64(100))
}

func TestConfigNamesTheField(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for want, c := range map[string]recall.Config{
		"recall: memory 255: want 256 to 16777216":                     {Memory: 255},
		"recall: guard 101: want 1 to 100":                             {Guard: 101},
		`recall: map "page": want "range", "pages" or "graph"`:         {Map: "page"},
		`recall: page_bytes 4096: needs map "pages" or "graph"`:        {PageBytes: 4096},
		`recall: guard 2: needs map "range"`:                           {Map: recall.Pages, Guard: 2},
		"recall: page_bytes 3145728: want a power of two from 512B to": {Map: recall.Pages, PageBytes: 3 << 20},
	} {
		_, err := recall.New(gpu, c)
		require.ErrorContains(t, err, want)
	}
	_, err = recall.NewRange(gpu, recall.Config{Map: recall.Pages})
	require.ErrorContains(t, err, `recall: map "pages": want "range"`)
}
