package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// seer is a best fit that wastes memory on the sizes which its forecast has.
type seer struct {
	wrap.Forwarder
	expected map[device.Size]bool
}

func (s *seer) Has(p power.Power) bool { return p == power.PowerPlanner || s.Forwarder.Has(p) }

func (s *seer) Plan(f power.Forecast) {
	for x := range f {
		if x.Kind == power.ExpectAlloc {
			s.expected[x.Request.Size] = true
		}
	}
}

// Alloc aligns a request that was expected to 8 MiB.
func (s *seer) Alloc(r alloc.Request) (alloc.Block, error) {
	if s.expected[r.Size] {
		r.Align = 8 * device.MiB
	}
	return s.Forwarder.Alloc(r)
}

// learners is a catalogue of a strategy that plans and one that does not.
var learners = setting.Catalogue{
	setting.SpecOf("seer", "best fit that plans", func(src device.Source, c bestfit.Config) (*seer, error) {
		s, err := bestfit.New(src, c)
		return &seer{wrap.Forward(s, nil), map[device.Size]bool{}}, err
	}),
	setting.SpecOf("mine", "another best fit", bestfit.New),
}

func hashOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TestCompareLearns compares with and without a training trace and looks for it in every output.
func TestCompareLearns(t *testing.T) {
	train, test := write(t, "train.trace", "a 7 256\nf 7\n"), write(t, "test.trace", small)
	var plain, learned compare.Report
	text := over(t, learners, "compare", "--json", "-", test)
	require.NoError(t, json.Unmarshal([]byte(text), &plain))
	require.NotContains(t, text, "learned")
	text = over(t, learners, "compare", "--learn", train, "--json", "-", test)
	require.NoError(t, json.Unmarshal([]byte(text), &learned))
	require.Nil(t, plain.Learned)
	require.Equal(t, &compare.Training{Trace: "train", TraceSHA256: hashOf(t, train), Events: 2,
		Strategies: []string{"seer"}}, learned.Learned)
	require.Equal(t, hashOf(t, train), learned.Runs[0].LearnedFrom)
	require.Empty(t, learned.Runs[1].LearnedFrom)
	require.Greater(t, *learned.Runs[0].MinCapacity, *plain.Runs[0].MinCapacity)
	require.Equal(t, plain.Runs[1].MinCapacity, learned.Runs[1].MinCapacity)

	require.NotContains(t, over(t, learners, "compare", "--csv", "-", test), "learned_from")
	rows := strings.Split(over(t, learners, "compare", "--learn", train, "--csv", "-", test), "\n")
	require.True(t, strings.HasSuffix(rows[0], ",learned_from_sha256"), rows[0])
	require.True(t, strings.HasSuffix(rows[1], ","+hashOf(t, train)), rows[1])
	require.True(t, strings.HasSuffix(rows[2], ","), rows[2])

	note := "Learned from train, 2 events, sha256 " + hashOf(t, train)[:12] + ": seer."
	page := filepath.Join(t.TempDir(), "page.html")
	require.Contains(t, over(t, learners, "compare", "--learn", train, "--html", page, test), note+"\n")
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), note)

	require.Contains(t, over(t, learners, "compare", "--learn", test, test),
		": seer. That is this trace itself, so its whole future was known.\n")
}

// TestWrongTrainingIsRefused names --learn in each error.
func TestWrongTrainingIsRefused(t *testing.T) {
	good, empty := write(t, "good.trace", small), write(t, "empty.trace", "mark x\n")
	bad, missing := write(t, "bad.trace", "a 1 -5\n"), filepath.Join(t.TempDir(), "missing.trace")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--learn: " + bad + `:1: size "-5"`, []string{"--learn", bad, good}},
		{"--learn: " + missing + ": no such file", []string{"--learn", missing, good}},
		{"--learn: " + empty + ": no allocation to learn from", []string{"--learn", empty, good}},
		{"--learn: " + good + ": no strategy plans ahead: want one of seer",
			[]string{"--learn", good, "--strategies", "mine", good}},
		{"--learn: standard input can be read only once", []string{"--learn", "-", "-"}},
		{"--json: " + good + " is a file to read", []string{"--learn", good, "--json", good, empty}},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), learners, append([]string{"compare"}, c.args...), strings.NewReader(""), &out, &errs)
		require.Equal(t, exitTrouble, status)
		require.Empty(t, out.String())
		require.Contains(t, errs.String(), c.want)
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
	}
	var out, errs bytes.Buffer
	run(t.Context(), learners[1:], []string{"compare", "--learn", good, good}, strings.NewReader(""), &out, &errs)
	require.Contains(t, errs.String(), "no strategy plans ahead, and this program has none that does: docs/extending.md")
}
