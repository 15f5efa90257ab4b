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

func TestRematerializingALongChainNeedsBoundedStack(t *testing.T) {
	const n = 1_000_000
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	var b remat.Builder
	call := func(size device.Size, args ...remat.Tensor) remat.Tensor {
		out, err := b.Call(remat.Call{Cost: 1, Args: args, Outputs: []remat.Output{{Size: size, Alias: remat.NoAlias}}})
		if err != nil { // a million times require would take longer than the runs
			t.Fatal(err)
		}
		return out
	}
	last := call(1)
	for range n - 1 {
		next := call(1, last)
		if err := b.Release(last); err != nil {
			t.Fatal(err)
		}
		last = next
	}
	require.NoError(t, b.Release(call(3))) // takes all memory there is, so the end of the chain has to go
	call(1, last)
	for _, h := range []string{"lru", "eq"} {
		res := play(t, b.Schedule(), 3, remat.Config{Heuristic: h, Liveness: "eager"})
		require.Equal(t, remat.OK, res.Verdict, h)
		require.Equal(t, n, res.Remats, h)
	}
}

func TestBudgetBelowTheConstantsFails(t *testing.T) {
	s := logOf(t, "syn_unet4")
	for _, h := range remat.Heuristics() {
		res := play(t, s, 1<<10, remat.Config{Heuristic: h.Name, Liveness: "eager"})
		require.Equal(t, remat.OOM, res.Verdict)
		require.Zero(t, res.Evictions)
	}
}

func TestChainNeedsOnlyTheSquareRootOfItsMemory(t *testing.T) {
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

func TestScaledCostsGiveTheSameVictims(t *testing.T) {
	plain, dear := logOf(t, "syn_resnet20"), logOf(t, "syn_resnet20")
	dear.Cost *= 4
	for i := range dear.Ops {
		dear.Ops[i].Cost *= 4
	}
	for _, h := range []string{"eq", "local", "estar", "msps", "lru", "eq-mended", "dte", "oneflow", "mge", "mge-static",
		"belady"} {
		for _, tenths := range []device.Size{3, 5, 8} {
			budget := peakOf(t, plain, "banish") * tenths / 10
			a := play(t, plain, budget, remat.Config{Heuristic: h, Liveness: "eager", Limit: plain.Cost})
			b := play(t, dear, budget, remat.Config{Heuristic: h, Liveness: "eager", Limit: dear.Cost})
			require.Equal(t, a.VictimsSHA256, b.VictimsSHA256)
			require.Equal(t, 4*(a.Clock-1), b.Clock-1)
		}
	}
}

func TestNamesAndReleaseOrderGiveTheSameVictims(t *testing.T) {
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

func TestInvalidConfigurationsAreNamed(t *testing.T) {
	for c, want := range map[remat.Config]string{
		{Heuristic: "best", Liveness: "none"}:                                                  `heuristic "best": want estar, `,
		{Heuristic: "lru", Liveness: "no"}:                                                     `liveness "no": want none, eager, banish, mge-refcount, detach`,
		{Heuristic: "lru", Liveness: "none", Sampling: remat.Sampling{Kind: remat.SampleK}}:    "K is 0, want at least 1",
		{Heuristic: "lru", Liveness: "none", Sampling: remat.Sampling{Kind: 9}}:                "sampling 9: want at most 3",
		{Heuristic: "lru", Liveness: "none", MinEvictee: remat.Minimum{Percent: 101}}:          "101 percent, want 0 to 100",
		{Heuristic: "lru", Liveness: "none", MinEvictee: remat.Minimum{Percent: 1, Cut: true}}: "Cut needs Size",
		{Heuristic: "lru", Liveness: "none", Quirks: remat.AllQuirks + 1}: "quirks 0x800: " +
			"want at most 0x7ff",
	} {
		_, err := remat.Run(&remat.Schedule{}, &remat.Counter{}, c)
		require.ErrorContains(t, err, want)
	}
}

// stopper closes a channel when so many operators have run.
type stopper struct {
	after int
	stop  chan struct{}
}

func (s *stopper) OnRun(int32, remat.Tensor, bool) {
	if s.after--; s.after == 0 {
		close(s.stop)
	}
}

func (s *stopper) OnEvict(int32, remat.Cause) {}
func (*stopper) OnReturn(int32, bool)         {}

func (s *stopper) OnForget(int32) {}

func TestStopEndsARun(t *testing.T) {
	stop := make(chan struct{})
	res := play(t, logOf(t, "syn_chain64"), remat.Unlimited,
		remat.Config{Heuristic: "eq", Liveness: "eager", Stop: stop, Observer: &stopper{5, stop}})
	require.Equal(t, remat.Stopped, res.Verdict)
	require.Equal(t, 5, res.Runs)
}
