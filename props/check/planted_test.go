package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
	"github.com/vramyard/vramyard/props/recompute"
	"github.com/vramyard/vramyard/strategies"
)

var rewrite = flag.Bool("rewrite", false, "write the table of planted bugs into docs/invariants.md")

// needsBugs skips a test in a build without planted bugs.
func needsBugs(t *testing.T) {
	t.Helper()
	if !planted.Enabled {
		t.Skip("needs the overlay of go run ./props/planted/bugs/overlay")
	}
}

// TestLeastCallsShowBug runs what a person needs to see a bug, with and without it.
func TestLeastCallsShowBug(t *testing.T) {
	needsBugs(t)
	for _, b := range bugs.All() {
		if b.Minimal == "" {
			continue
		}
		t.Run(string(b.ID)+"/"+b.Setting.Strategy, func(t *testing.T) {
			broken, err := check.Broken(strategies.All(), b, planted.None)
			require.NoError(t, err)
			require.Empty(t, broken, "without the bug")
			broken, err = check.Broken(strategies.All(), b, b.ID)
			require.NoError(t, err)
			assert.Subset(t, broken, b.Breaks)
		})
	}
}

// TestLeastCallsCannotBeFewer takes each call out in turn: then nothing may break.
func TestLeastCallsCannotBeFewer(t *testing.T) {
	needsBugs(t)
	for _, b := range bugs.All() {
		if b.Minimal == "" {
			continue
		}
		t.Run(string(b.ID)+"/"+b.Setting.Strategy, func(t *testing.T) {
			lines := strings.FieldsFunc(b.Minimal, func(r rune) bool { return r == '\n' })
			for i := range lines {
				fewer := b
				fewer.Minimal = strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n")
				broken, err := check.Broken(strategies.All(), fewer, b.ID)
				require.NoError(t, err)
				require.NotSubset(t, broken, b.Breaks, "without %q", lines[i])
			}
		})
	}
}

// TestPlantedTable looks for every bug and compares what comes out with the document.
func TestPlantedTable(t *testing.T) {
	needsBugs(t)
	if testing.Short() {
		t.Skip("it takes half a minute, which -short leaves out")
	}
	all := check.PlantedBugs()
	require.GreaterOrEqual(t, len(all), 60)
	var text strings.Builder
	text.WriteString("| bug | strategy | invariant | what goes wrong | sequences | operations |\n" +
		"|---|---|---|---|--:|--:|\n")
	for _, b := range all {
		v, err := check.Planted(t.Context(), strategies.All(), b, check.Options{Seed: 1})
		require.NoError(t, err, b.ID)
		assert.True(t, v.Caught, "%s in %s: reported %q, want one of %v\n%v", b.ID, b.Setting.Strategy, v.Broken,
			b.Breaks, v.Failure)
		assert.True(t, v.Small(), "%s in %s: %d operations, %d are enough\n%v", b.ID, b.Setting.Strategy, v.Shrunk,
			v.Minimal, v.Failure)
		text.WriteString(row(v))
	}
	fmt.Fprintf(&text, "\nCaught: %d of %d.\n", len(all), len(all))
	if t.Failed() {
		return
	}
	const path = "../../docs/invariants.md"
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	parts := regexp.MustCompile(`(?s)^(.*<!-- planted: begin -->\n)(.*)(<!-- planted: end -->\n.*)$`).FindSubmatch(old)
	require.Len(t, parts, 4, "%s has no place for the table", path)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, slices.Concat(parts[1], []byte(text.String()), parts[3]), 0o644))
		return
	}
	require.Equal(t, text.String(), string(parts[2]), "%s: go run ./props/planted/bugs/overlay FOLDER, then go test "+
		"-overlay FOLDER/overlay.json ./props/check -run TestPlantedTable -rewrite", path)
}

// row returns one line of the table. The invariant that was reported comes first.
func row(v check.Verdict) string {
	numbers := []string{v.Broken}
	for _, n := range v.Bug.Breaks {
		if n != v.Broken {
			numbers = append(numbers, n)
		}
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %d | %d / %d |\n", v.Bug.ID, v.Bug.Setting.Strategy,
		strings.Join(numbers, ", "),
		v.Bug.Doc, v.Sequences, v.Shrunk, v.Minimal)
}

// bugless are the invariants without a bug of their own. SeenAs is the number of the invariant that
// says the same where the suite looks, "" for none.
var bugless = []struct{ Invariant, SeenAs, Reason string }{
	{"I38", "", "it is about several strategies at once; tests of Differential in props plant bugs for it"},
	{"I44", "", "it is about runs far longer than a sequence; tests of Bounded in props plant bugs for it"},
	{"I51", "", "any bug of I10, seen in the memory; tests of contents in props and props/check look for some so"},
	{"I63", "", "it is about a device and no strategy; tests in props/check have a stand-in for the driver " +
		"answer wrongly"},
	{"I68", "", claimed}, {"I69", "", claimed}, {"I70", "", claimed}, {"I71", "", claimed}, {"I72", "", claimed},
	{"I75", "", claimed},
	{"B12", "I5", "Check does not know that every block was freed; the suite does, and then looks for neighbours " +
		"left apart"},
	{"T4", "I35", "a handle that is mapped twice in a window makes the next call of the strategy panic"},
	{"B13", "I31", "Check sees one instance; the suite compares two"},
	{"W5", "I26", "Check does not know what was refused; the suite does, and then looks for chunks that would " +
		"have served"},
	{"R4", "", "it is about a part alone and the same part in the whole; a test in strategies/slabbuddy splits sequences"},
}

const claimed = "a configuration claims it; tests of Claims in props have configurations that lie"

// TestEveryInvariantHasBug compares the bugs with what the documents promise.
func TestEveryInvariantHasBug(t *testing.T) {
	broken := map[string]bool{}
	for _, b := range bugs.All() {
		for _, n := range b.Breaks {
			broken[n] = true
		}
	}
	promised := map[string]bool{}
	for n := range props.Numbers {
		promised[n.String()] = true
	}
	for n := range recompute.Numbers {
		promised[n.String()] = true
	}
	pages, err := filepath.Glob("../../strategies/*/doc.go")
	require.NoError(t, err)
	originals, err := filepath.Glob("../../strategies/*/*/doc.go")
	require.NoError(t, err)
	pages = append(append(pages, originals...), "../../harness/remat/doc.go")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`Invariant ([A-Z]\d+)\b`).FindAllSubmatch(text, -1) {
			promised[string(m[1])] = true
		}
	}
	require.Greater(t, len(promised), 80)
	excused := map[string]bool{}
	for _, e := range bugless {
		assert.False(t, broken[e.Invariant], "%s is excused and has a bug", e.Invariant)
		assert.True(t, e.SeenAs == "" || broken[e.SeenAs], "%s is seen as %s, which has no bug", e.Invariant, e.SeenAs)
		excused[e.Invariant] = true
	}
	for n := range promised {
		assert.True(t, broken[n] || excused[n], "%s has neither a bug nor an exception", n)
	}
	for n := range broken {
		assert.True(t, promised[n], "%s has a bug and is promised nowhere", n)
	}
}

// TestPlantedBugsOfSomeStrategies names strategies with and without a preset.
func TestPlantedBugsOfSomeStrategies(t *testing.T) {
	needsBugs(t)
	count := func(names ...string) int { return len(check.PlantedBugs(names...)) }
	assert.Equal(t, len(bugs.All()), count())
	sum := 0
	for _, s := range strategies.All() {
		sum += count(s.Name)
	}
	assert.Equal(t, count(), sum+count("sharded")+count(check.Remat))
	assert.Positive(t, count("slab:xdl"))
	assert.Greater(t, count("slab"), count("slab:xdl")+count("slab:blaze"), "those of the bare name count too")
	assert.Zero(t, count("nothing"))
}
