package remat_test

import (
	"compress/gzip"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

func TestAChainOfAMillionIsMadeAgainInABoundedStack(t *testing.T) {
	const n = 1_000_000
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	var b remat.Builder
	one := []remat.Output{{Size: 1, Alias: remat.NoAlias}}
	last := remat.NoAlias
	for i := range n {
		args := []remat.Tensor{}
		if i > 0 {
			args = append(args, remat.Tensor(last))
		}
		t1, err := b.Call(remat.Call{Cost: 1, Args: args, Outputs: one})
		require.NoError(t, err)
		if i > 0 {
			require.NoError(t, b.Release(remat.Tensor(last)))
		}
		last = int(t1)
	}
	require.NoError(t, b.Release(remat.Tensor(last)))
	_, err := b.Call(remat.Call{Cost: 1, Args: []remat.Tensor{remat.Tensor(last)}, Outputs: one})
	require.NoError(t, err)
	for _, h := range []string{"lru", "eq", "local"} {
		res := play(t, b.Schedule(), 3, remat.Config{Heuristic: h, Liveness: "eager"})
		require.Equal(t, remat.OK, res.Verdict, h)
		require.Equal(t, n, res.Remats, h)
	}
}

func TestABudgetBelowTheConstantsIsOutOfMemory(t *testing.T) {
	s := logOf(t, "syn_unet4")
	for _, h := range remat.Heuristics() {
		res := play(t, s, 1<<10, remat.Config{Heuristic: h.Name, Liveness: "eager"})
		require.Equal(t, remat.OOM, res.Verdict)
		require.Zero(t, res.Evictions)
	}
}

func TestAChainIsCheapWithTheSquareRootOfItsMemory(t *testing.T) {
	lru := []float64{}
	for _, n := range []int{16, 64, 256, 1024} {
		s, budget := chain(t, n), device.Size(math.Ceil(2*math.Sqrt(float64(n))))
		remats := func(h string) int {
			res := play(t, s, budget, remat.Config{Heuristic: h, Liveness: "eager"})
			require.Equal(t, remat.OK, res.Verdict)
			return res.Remats
		}
		require.Less(t, remats("estar"), n)
		require.Less(t, remats("eq"), n)
		require.LessOrEqual(t, remats("estar/m"), 2*n)
		lru = append(lru, float64(remats("lru"))/float64(n))
	}
	for i := 1; i < len(lru); i++ {
		require.Greater(t, lru[i], lru[i-1], "lru pays more for each operator the longer the chain is")
	}
}

func TestDearerOperatorsOfTheSameProportionsGoTheSameWay(t *testing.T) {
	plain, dear := logOf(t, "syn_resnet20"), logOf(t, "syn_resnet20")
	dear.Cost *= 4
	for i := range dear.Ops {
		dear.Ops[i].Cost *= 4
	}
	for _, h := range []string{"eq", "local", "estar", "msps", "lru"} {
		for _, tenths := range []device.Size{3, 5, 8} {
			budget := peakOf(t, plain, "banish") * tenths / 10
			a := play(t, plain, budget, remat.Config{Heuristic: h, Liveness: "eager", Limit: plain.Cost})
			b := play(t, dear, budget, remat.Config{Heuristic: h, Liveness: "eager", Limit: dear.Cost})
			require.Equal(t, a.VictimsSHA256, b.VictimsSHA256)
			require.Equal(t, 4*(a.Clock-1), b.Clock-1)
		}
	}
}

func TestNamesAndForeignReleasesMeanNothing(t *testing.T) {
	f, err := os.Open("testdata/syn_unet4.log.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	raw, err := io.ReadAll(z)
	require.NoError(t, err)
	text := strings.ReplaceAll(string(raw), `"x`, `"tensor `)
	text = strings.ReplaceAll(text, `{"ARGS"`, `{"INSTRUCTION":"RELEASE","NAME":"nobody"}`+"\n"+`{"ARGS"`)
	require.NotEqual(t, string(raw), text)
	plain, other := logOf(t, "syn_unet4"), read(t, text)
	require.Equal(t, plain.Steps, other.Steps)
	require.Equal(t, plain.Tensors, other.Tensors)
}

func TestMistakesInAConfigurationAreNamed(t *testing.T) {
	for c, want := range map[remat.Config]string{
		{Heuristic: "best", Liveness: "none"}: `heuristic "best": want estar, `,
		{Heuristic: "lru", Liveness: "no"}:    `liveness "no": want none, eager, banish`,
		{Heuristic: "eq", Liveness: "banish"}: "heuristic eq keeps neighbourhoods that liveness banish would tear apart",
	} {
		_, err := remat.Run(&remat.Schedule{}, &remat.Counter{}, c)
		require.ErrorContains(t, err, want)
	}
}
