package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/bench"
)

func TestSelectionKeepsTheOrder(t *testing.T) {
	all, err := bench.Selection{Workloads: "w3, w1,w2", Live: "20, 10", Pairs: 5, Steps: 2, Seed: 7}.Resolve()
	require.NoError(t, err)
	var names []string
	for _, w := range all {
		names = append(names, w.String())
	}
	require.Equal(t, []string{
		"w3 pairs=5 seed=7", "w1 live=20 pairs=5 seed=7", "w1 live=10 pairs=5 seed=7", "w2 steps=2 seed=7",
	}, names)
}

func TestSelectionTakesTheSizesOfMixes(t *testing.T) {
	all, err := bench.Selection{Workloads: "loguniform:16KiB-1MiB,uniform:1-16384,uniform", Live: "10", Pairs: 5,
		Seed: 7}.Resolve()
	require.NoError(t, err)
	var names []string
	for _, w := range all {
		names = append(names, w.String())
	}
	require.Equal(t, []string{
		"loguniform live=10 pairs=5 least=16384 most=1048576 seed=7",
		"uniform live=10 pairs=5 least=1 most=16384 seed=7",
		"uniform live=10 pairs=5 least=1 most=16384 seed=7",
	}, names)
	for sizes, want := range map[string]string{
		"w1:1-2": "its sizes are fixed: want no ", "uniform:": `sizes "": want two`, "uniform:5": `sizes "5": want two`,
		"uniform:a-9": `sizes "a-9": want two`, "uniform:9-5": "want at most 5B", "uniform:0-5": "want 1 to ",
		"loguniform:3-8": "want a power of two",
	} {
		_, err := bench.Selection{Workloads: sizes, Live: "10", Pairs: 5}.Resolve()
		require.ErrorContains(t, err, "bench: workloads: ", sizes)
		require.ErrorContains(t, err, want, sizes)
	}
}

func TestSelectionNamesTheWrongPart(t *testing.T) {
	good := bench.Selection{Workloads: "w1,w2", Live: "10", Pairs: 5, Steps: 2}
	for part, spoil := range map[string]func(*bench.Selection){
		"workloads": func(s *bench.Selection) { s.Workloads = "w1,," },
		"live":      func(s *bench.Selection) { s.Live = "ten" },
		"pairs":     func(s *bench.Selection) { s.Pairs = -1 },
		"steps":     func(s *bench.Selection) { s.Steps = -1 },
	} {
		s := good
		spoil(&s)
		_, err := s.Resolve()
		var wrong *bench.SelectionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, part, wrong.Part)
		require.ErrorIs(t, err, wrong.Why)
		require.ErrorContains(t, err, "bench: "+part+": ")
	}
}
