package sweep

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomPlan returns a plan of cells with costs of several orders of magnitude.
func randomPlan(seed uint64) *Plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &Plan{Seed: seed}
	for i := range 1 + rng.IntN(400) {
		r := Row{Cell: fmt.Sprintf("%064d", i), Search: Minimum, Cost: float64(1 + rng.IntN(1<<rng.IntN(20)))}
		r.Trace = fmt.Sprint(rng.IntN(5))
		if rng.IntN(20) == 0 {
			r.Cell = fmt.Sprintf("%064d", i/2) // one cell under two names
		}
		if rng.IntN(3) == 0 {
			r.Search = Replay
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// TestShardsPartitionThePlan checks that every cell is in one shard, or all its parts in different
// ones, and that no shard has more than the bound of the algorithm.
func TestShardsPartitionThePlan(t *testing.T) {
	for seed := range uint64(200) {
		p := randomPlan(seed)
		n := 1 + int(seed)%70
		shards := p.assign(n)
		require.Len(t, shards, n)
		parts := map[int]map[int]bool{} // by row
		most, longest, sum := 0.0, 0.0, 0.0
		for _, shard := range shards {
			cost, here := 0.0, map[int]bool{}
			for _, s := range shard {
				require.False(t, here[s.row], "two parts of one cell in one shard")
				here[s.row] = true
				if parts[s.row] == nil {
					parts[s.row] = map[int]bool{}
				}
				require.False(t, parts[s.row][s.part])
				parts[s.row][s.part] = true
				require.Less(t, s.part, s.parts)
				c := p.Rows[s.row].Cost
				if s.parts > 1 {
					c *= unshared + (1-unshared)/float64(s.parts)
				}
				cost, longest = cost+c, max(longest, c)
			}
			most, sum = max(most, cost), sum+cost
		}
		require.Len(t, parts, len(p.cells()))
		for _, row := range p.cells() {
			require.NotEmpty(t, parts[row])
			for part := range parts[row] {
				require.Less(t, part, len(parts[row]), "parts are numbered without a gap")
			}
		}
		share := sum / float64(n)
		require.LessOrEqual(t, most, share+share/blocks+longest+1e-6)
	}
}

func TestTheAssignmentDependsOnTheSeed(t *testing.T) {
	p := randomPlan(7)
	for i := range p.Rows {
		p.Rows[i].Cost = 1
	}
	first := p.assign(9)
	require.Equal(t, first, p.assign(9))
	p.Seed++
	require.NotEqual(t, first, p.assign(9))
}

func TestAnExpensiveSearchIsShared(t *testing.T) {
	p := &Plan{Rows: []Row{
		{Cell: "a", Search: Minimum, Cost: 1000}, {Cell: "b", Search: Replay, Cost: 1000},
		{Cell: "c", Search: Quick, Cost: 1},
	}}
	parts := map[int]int{}
	for _, shard := range p.assign(64) {
		for _, s := range shard {
			parts[s.row]++
		}
	}
	require.Equal(t, map[int]int{0: mostParts, 1: 1, 2: 1}, parts)
}

// TestShardsOpenFewTraces has cells that are short beside opening their trace.
func TestShardsOpenFewTraces(t *testing.T) {
	p := &Plan{}
	for i := range 10_000 {
		p.Rows = append(p.Rows, Row{Cell: fmt.Sprintf("%064d", i), Trace: fmt.Sprint(i % 7), Search: Minimum,
			Cost: 36})
	}
	opened, most := 0, 0
	for _, shard := range p.assign(64) {
		traces := map[string]bool{}
		for _, s := range shard {
			traces[p.Rows[s.row].Trace] = true
		}
		opened, most = opened+len(traces), max(most, len(shard))
	}
	require.Less(t, opened, 64*4)
	require.LessOrEqual(t, most, 10_000/64*105/100)
}
