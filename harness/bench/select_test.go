package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/bench"
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
