package remat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/budget"
)

// TestMegEngineSettingsDefaultToItsCode runs a log with all settings at their defaults, and with
// none.
func TestMegEngineSettingsDefaultToItsCode(t *testing.T) {
	s, err := ReadFile("testdata/syn_unet4.log.gz", budget.New(1<<30))
	require.NoError(t, err)
	all := "mge"
	for _, setting := range ScoreSettings() {
		all += ":" + setting.Name + "=" + setting.Default
	}
	for _, same := range [][2]string{{"mge", all}, {"mge-nofrag", "mge:free=0"}, {"mge", "mge-nofrag:free=1"}} {
		for _, size := range []device.Size{300 << 20, 400 << 20} {
			var results [2]Result
			for i, name := range same {
				results[i], err = Run(s, &Counter{Budget: size}, Config{Heuristic: name, Liveness: "eager"})
				require.NoError(t, err)
			}
			require.Positive(t, results[0].Evictions[Pressure])
			require.Equal(t, results[0], results[1], same)
		}
	}
}

// TestMegEngineSettingsChooseTheVictim sets one exponent or weight at a time.
func TestMegEngineSettingsChooseTheVictim(t *testing.T) {
	for name, want := range map[string]string{
		"mge:stale=0":                    "b",
		"mge:neighbors=0:stale=0":        "c", // 10050 / 10000
		"mge:size=0:stale=0":             "a", // the least cost
		"mge:time=2:stale=0":             "a", // 121 / 10
		"mge:time=0:stale=0":             "c", // the largest
		"mge:time=0:size=0":              "a", // the oldest
		"mge:time=0:size=0:stale=0":      "c", // all equal: the last
		"mge:time=0:size=0:measure=time": "a",
	} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"x", []device.Size{50}, []string{"k"}},    // 51, which c has to carry
			{"a", []device.Size{10}, []string{"k"}},    // 11 / 10
			{"b", []device.Size{100}, []string{"k"}},   // 101 / 100
			{"c", []device.Size{10000}, []string{"x"}}, // (10050 + 51) / 10000
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: name})
		st.evict("x")
		require.Equal(t, want, st.victim(), name)
	}
}

func TestMeasuredTimeNeedsALogWithTimes(t *testing.T) {
	var b Builder
	k, err := b.Constant(1)
	require.NoError(t, err)
	_, err = b.Call(Call{Args: []Tensor{k}, Outputs: []Output{{Size: 1, Alias: NoAlias}}})
	require.NoError(t, err)
	_, err = Run(b.Schedule(), &Counter{Budget: 10}, Config{Heuristic: "mge:measure=time", Liveness: "eager"})
	require.EqualError(t, err, "heuristic mge:measure=time: the log has no times, want measure=bytes")
	_, err = Run(b.Schedule(), &Counter{Budget: 10}, Config{Heuristic: "mge:measure=bytes", Liveness: "eager"})
	require.NoError(t, err)
}

func TestInvalidScoreSettingsAreNamed(t *testing.T) {
	for name, want := range map[string]string{
		"eq:size=1":         `heuristic eq: setting "size": want evict, link, host`,
		"mge:":              `heuristic mge: setting "": want time, size, stale, neighbors, free, again, measure, evict, link, host`,
		"mge:size":          `heuristic mge: size is "", want 0 to 10`,
		"mge:size=-1":       `heuristic mge: size is "-1", want 0 to 10`,
		"mge:size=NaN":      `heuristic mge: size is "NaN", want 0 to 10`,
		"mge:size=1:size=2": "heuristic mge: setting size is given twice",
		"mge:measure=flops": `heuristic mge: measure is "flops", want bytes or time`,
	} {
		_, err := Run(&Schedule{}, &Counter{}, Config{Heuristic: name, Liveness: "eager"})
		require.EqualError(t, err, want)
	}
}

func TestVariantsAreAllCombinations(t *testing.T) {
	all, err := Variants("mge:size=0/1:stale=1/2")
	require.NoError(t, err)
	require.Equal(t, []string{
		"mge:size=0:stale=1", "mge:size=0:stale=2", "mge:size=1:stale=1", "mge:size=1:stale=2",
	}, all)
	all, err = Variants("1/s") // a slash in a name is no list
	require.NoError(t, err)
	require.Equal(t, []string{"1/s"}, all)
	tens := "=0/1/2/3/4/5/6/7/8/9"
	_, err = Variants("mge:time" + tens + ":size" + tens + ":stale" + tens + ":free=0/1")
	require.ErrorContains(t, err, "want at most 1000 combinations of values")
}
