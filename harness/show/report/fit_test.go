package report_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/report"
)

// fit returns text as a window of a width shows it, written in pieces of some bytes.
func fit(t *testing.T, s string, width, piece int) string {
	t.Helper()
	var b strings.Builder
	f := report.Fit(&b, width)
	for len(s) > 0 {
		n := min(piece, len(s))
		_, err := io.WriteString(f, s[:n])
		require.NoError(t, err)
		s = s[n:]
	}
	require.NoError(t, f.Flush())
	return b.String()
}

// shown returns a table as a window of a width shows it.
func shown(t *testing.T, s report.Sheet, width int, rules ...int) string {
	t.Helper()
	var b strings.Builder
	f := report.Fit(&b, width)
	_, err := fmt.Fprintln(f, s.Terminal(f, rules...))
	require.NoError(t, err)
	require.NoError(t, f.Flush())
	return b.String()
}

// columns returns columns of texts.
func columns(names ...string) (all []report.Column) {
	for _, n := range names {
		all = append(all, report.Column{Name: n})
	}
	return all
}

// wide returns a table of 77 columns.
func wide() report.Sheet {
	return report.TextSheet(columns("strategy", "min capacity", "× bound", "device calls", "notes"),
		[]any{"lower bound", "57.74 GiB", "1.000", "—", "live bytes alone"},
		[]any{"caching", "60.77 GiB", "1.052", "1234", "a │ in a name"})
}

func TestWideWindowsLeaveTablesUnchanged(t *testing.T) {
	s := wide()
	assert.Equal(t, s.Terminal(io.Discard)+"\n", shown(t, s, 77))
}

func TestNarrowWindowsDropColumns(t *testing.T) {
	assert.Equal(t,
		`┌─────────────┬──────────────┬─────────┬──────────────────┐
│ strategy    │ min capacity │ × bound │ notes            │
├─────────────┼──────────────┼─────────┼──────────────────┤
│ lower bound │ 57.74 GiB    │ 1.000   │ live bytes alone │
├─────────────┼──────────────┼─────────┼──────────────────┤
│ caching     │ 60.77 GiB    │ 1.052   │ a │ in a name    │
└─────────────┴──────────────┴─────────┴──────────────────┘
omitted because the window is too narrow: device calls
`, shown(t, wide(), 60, 1))
}

// TestNarrowWindowsKeepMemory narrows a window step by step: figures of memory go after all others.
func TestNarrowWindowsKeepMemory(t *testing.T) {
	memory := []string{"min capacity", "safe from", "× bound", "peak reserved", "waste"}
	others := []string{"ext. frag.", "ns/op", "device calls", "device time"}
	header := columns(slices.Concat([]string{"strategy"}, memory, others)...)
	for width := 140; width >= 60; width-- {
		head := strings.Split(shown(t, report.TextSheet(header, make([]any, len(header))), width), "\n")[1]
		for _, m := range memory {
			for _, o := range others {
				assert.False(t, strings.Contains(head, o) && !strings.Contains(head, m), "%d columns: %s without %s", width, o, m)
			}
		}
	}
}

func TestNarrowestWindowsShowLists(t *testing.T) {
	assert.Equal(t, `lower bound
  min capacity: 57.74 GiB
  × bound: 1.000
  device calls: —
  notes: live bytes alone
caching
  min capacity: 60.77 GiB
  × bound: 1.052
  device calls: 1234
  notes: a │ in a name
`, shown(t, wide(), 30))
}

func TestTablesOfTwoColumnsBecomeNameAndValue(t *testing.T) {
	assert.Equal(t, "name: a\n  value\nb: 1 more\n",
		shown(t, report.TextSheet(columns("name", "a value"), []any{"b", "1\nmore"}), 13))
}

func TestNoLineIsWiderThanTheWindow(t *testing.T) {
	long := report.TextSheet(columns("name", "what it is", "a", "b"),
		[]any{strings.Repeat("n", 90), strings.Repeat("word ", 60), "中文", "×"})
	for width := 20; width < 120; width += 7 {
		for _, s := range []report.Sheet{wide(), long} {
			for line := range strings.Lines(shown(t, s, width)) {
				assert.LessOrEqual(t, text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")), width)
			}
		}
	}
}

func TestLastColumnsAreFolded(t *testing.T) {
	long := report.TextSheet(columns("name", "what it is"), []any{"a", "one two three four five six seven eight"},
		[]any{"b", "nine"})
	assert.Equal(t,
		`┌──────┬──────────────────────────┐
│ name │ what it is               │
├──────┼──────────────────────────┤
│ a    │ one two three four five  │
│      │ six seven eight          │
│ b    │ nine                     │
└──────┴──────────────────────────┘
`, shown(t, long, 35))
}

func TestRowsOfSeveralLinesAreOneOfAList(t *testing.T) {
	names := report.TextSheet(columns("name", "first figure", "second figure"), []any{"caching a:1,\nb:2", "1", "2"},
		[]any{"bfc", "3\n4", "5"})
	assert.Equal(t, "caching a:1, b:2\n  first figure: 1\n  second figure: 2\nbfc\n  first figure: 3 4\n  second "+
		"figure: 5\n", shown(t, names, 30))
}

func TestLabelsStayInTheirColumn(t *testing.T) {
	assert.Equal(t, "card       64.00 MiB\nbound      66.76 MiB,\n           the live\n           bytes\n",
		fit(t, "card       64.00 MiB\nbound      66.76 MiB, the live bytes\n", 24, 5))
}

func TestUnfinishedLinesAreWritten(t *testing.T) {
	for _, s := range []string{"┌─┐\n│ x", "\xe2", "x\ny"} {
		assert.Equal(t, s, fit(t, s, 3, 1))
	}
}

func TestSentencesAreBrokenBetweenWords(t *testing.T) {
	said := "a sentence of thirty-four columns.\n- a point that is longer than a line\n  figure           of 1\n"
	assert.Equal(t, said, fit(t, said, 80, 7))
	for _, piece := range []int{1, 7, 1000} {
		assert.Equal(t, "a sentence of\nthirty-four columns.\n- a point that is\n  longer than a line\n  figure of 1\n",
			fit(t, said, 20, piece))
	}
	assert.Equal(t, "日本語の名\n前\n", fit(t, "日本語の名前\n", 10, 1000), "wide characters take two columns")
	copied := "vramyard replay --strategy bfc --config '{\"limit\":8192}' TRACE\n    export " +
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
	assert.Equal(t, copied, fit(t, copied, 20, 1000), "what is to be copied stays in one line")
	assert.Equal(t, "no end", fit(t, "no end", 20, 3))
}

// TestLongLabelsAreBroken folds a first column of words, and not within a word.
func TestLongLabelsAreBroken(t *testing.T) {
	table := report.TextSheet([]report.Column{{Name: "setting"}, {Name: "min capacity", Number: true}, {Name: "notes"}},
		[]any{"caching max_split_size_mb:1, roundup_power2_divisions:8,\nlarge_segment_size_mb:32", "16.72 GiB",
			"as recorded, 23 OOMs on 16.00 GiB"},
		[]any{"slab", "14.03 GiB", ""})
	assert.Equal(t,
		`┌─────────────────────────────┬──────────────┬───────────────────────────┐
│ setting                     │ min capacity │ notes                     │
├─────────────────────────────┼──────────────┼───────────────────────────┤
│ caching                     │    16.72 GiB │ as recorded, 23 OOMs on   │
│ max_split_size_mb:1,        │              │ 16.00 GiB                 │
│ roundup_power2_divisions:8, │              │                           │
│ large_segment_size_mb:32    │              │                           │
│ slab                        │    14.03 GiB │                           │
└─────────────────────────────┴──────────────┴───────────────────────────┘
`, shown(t, table, 74))
	var b strings.Builder
	assert.Equal(t, 74, report.Columns(report.Fit(&b, 74), 100))
	assert.Equal(t, 100, report.Columns(&b, 100))
}
