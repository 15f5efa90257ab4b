package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestNamesLeadBackToWorkloads(t *testing.T) {
	for _, s := range workload.All() {
		p := s.Default
		p.Seed++
		if p.Live > 0 {
			p.Live /= 2
		}
		if p.Most > 0 {
			p.Most /= 2
		}
		for _, params := range []workload.Params{s.Default, p} {
			w, err := s.New(params)
			require.NoError(t, err)
			got, ok, err := workload.Named(w.Name())
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, w.String(), got.String())
		}
	}
}

func TestNamedRefuses(t *testing.T) {
	for _, file := range []string{"cpu_unet_train", "w1-run.csv", "w1-", "w1-live", "w1-live-5", "w1.csv"} {
		_, ok, err := workload.Named(file)
		require.NoError(t, err)
		require.False(t, ok, file)
	}
	for name, want := range map[string]string{
		"w1-live0":  "workload w1: live",
		"w1-steps3": `workload w1: "steps3"`,
		"w1-lives3": `workload w1: "lives3"`,
	} {
		_, ok, err := workload.Named(name)
		require.True(t, ok, name)
		require.ErrorContains(t, err, want, name)
	}
}
