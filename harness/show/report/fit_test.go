package report_test

import (
	"io"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
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

// wide is a table of 77 columns with text around it.
func wide() string {
	t := report.NewTable("strategy", "min capacity", "× bound", "device calls", "notes")
	t.AppendRow(table.Row{"lower bound", "57.74 GiB", "1.000", "—", "live bytes alone"})
	t.AppendSeparator()
	t.AppendRow(table.Row{"caching", "60.77 GiB", "1.052", "1234", "a │ in a name"})
	return "before\n" + t.Render() + "\nafter"
}

func TestTablesOfWideWindowsAreAsTheyWere(t *testing.T) {
	for _, piece := range []int{1, 7, 1000} {
		assert.Equal(t, wide(), fit(t, wide(), 200, piece))
	}
}

func TestNarrowWindowsDoWithoutColumns(t *testing.T) {
	want := `before
┌─────────────┬──────────────┬─────────┬──────────────────┐
│ strategy    │ min capacity │ × bound │ notes            │
├─────────────┼──────────────┼─────────┼──────────────────┤
│ lower bound │ 57.74 GiB    │ 1.000   │ live bytes alone │
├─────────────┼──────────────┼─────────┼──────────────────┤
│ caching     │ 60.77 GiB    │ 1.052   │ a │ in a name    │
└─────────────┴──────────────┴─────────┴──────────────────┘
without device calls, for which the window is too narrow
after`
	for _, piece := range []int{1, 7, 1000} {
		assert.Equal(t, want, fit(t, wide(), 60, piece))
	}
}

// TestNarrowWindowsKeepMemory narrows a window step by step: figures of memory go after all others.
func TestNarrowWindowsKeepMemory(t *testing.T) {
	memory := []string{"min capacity", "safe from", "× bound", "peak reserved", "waste"}
	others := []string{"ext. frag.", "ns/op", "device calls", "device time"}
	header := append(append([]any{"strategy"}, anys(memory)...), anys(others)...)
	tab := report.NewTable(header...)
	tab.AppendRow(make(table.Row, len(header)))
	for width := 140; width >= 60; width-- {
		shown := fit(t, tab.Render()+"\n", width, 1000)
		head := strings.Split(shown, "\n")[1]
		for _, m := range memory {
			for _, o := range others {
				assert.False(t, strings.Contains(head, o) && !strings.Contains(head, m), "%d columns: %s without %s", width, o, m)
			}
		}
	}
}

// anys returns strings as values of any type.
func anys(all []string) (values []any) {
	for _, s := range all {
		values = append(values, s)
	}
	return values
}

func TestNarrowestWindowsShowLists(t *testing.T) {
	assert.Equal(t, `before
lower bound
  min capacity: 57.74 GiB
  × bound: 1.000
  device calls: —
  notes: live bytes alone
caching
  min capacity: 60.77 GiB
  × bound: 1.052
  device calls: 1234
  notes: a │ in a name
after`, fit(t, wide(), 30, 9))
}

func TestTablesOfTwoColumnsBecomeNameAndValue(t *testing.T) {
	table := "┌──────┬─────────┐\n│ name │ a value │\n│      │ more    │\n├──────┼─────────┤\n│ b    │ 1       │\n└──────┴─────────┘\n"
	assert.Equal(t, "name: a value\n  more\nb: 1\n", fit(t, table, 15, 4))
}

func TestNoLineIsWiderThanTheWindow(t *testing.T) {
	long := report.NewTable("name", "what it is", "a", "b")
	long.AppendRow(table.Row{strings.Repeat("n", 90), strings.Repeat("word ", 60), "中文", "×"})
	for width := 20; width < 120; width += 7 {
		for _, s := range []string{wide(), long.Render() + "\n"} {
			for line := range strings.Lines(fit(t, s, width, 50)) {
				assert.LessOrEqual(t, text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")), width)
			}
		}
	}
}

func TestLastColumnsAreFolded(t *testing.T) {
	long := report.NewTable("name", "what it is")
	long.AppendRow(table.Row{"a", "one two three four five six seven eight"})
	long.AppendRow(table.Row{"b", "nine"})
	assert.Equal(t, `┌──────┬──────────────────────────┐
│ name │ what it is               │
├──────┼──────────────────────────┤
│ a    │ one two three four five  │
│      │ six seven eight          │
│ b    │ nine                     │
└──────┴──────────────────────────┘
`, fit(t, long.Render()+"\n", 35, 11))
}

func TestRowsOfSeveralLinesAreOneOfAList(t *testing.T) {
	names := report.NewTable("name", "first figure", "second figure")
	names.AppendRow(table.Row{"caching a:1,\nb:2", "1", "2"})
	names.AppendRow(table.Row{"bfc", "3\n4", "5"})
	assert.Equal(t, "caching a:1, b:2\n  first figure: 1\n  second figure: 2\nbfc\n  first figure: 3 4\n  second figure: 5\n", fit(t, names.Render()+"\n", 30, 9))
}

func TestLabelsStayInTheirColumn(t *testing.T) {
	assert.Equal(t, "card       64.00 MiB\nbound      66.76 MiB,\n           the live\n           bytes\n",
		fit(t, "card       64.00 MiB\nbound      66.76 MiB, the live bytes\n", 24, 5))
}

func TestUnfinishedTablesAreWritten(t *testing.T) {
	for _, s := range []string{"┌─┐\n│ x", "┌", "\xe2", "x\n┌", "┌─┐\n"} {
		assert.Equal(t, s, fit(t, s, 3, 1))
	}
}

func TestSentencesAreBrokenBetweenWords(t *testing.T) {
	said := "a sentence of thirty-four columns.\n- a point that is longer than a line\n  figure           of 1\n"
	assert.Equal(t, said, fit(t, said, 80, 7))
	for _, piece := range []int{1, 7, 1000} {
		assert.Equal(t, "a sentence of\nthirty-four columns.\n- a point that is\n  longer than a line\n  figure of 1\n", fit(t, said, 20, piece))
	}
	assert.Equal(t, "日本語の名\n前\n", fit(t, "日本語の名前\n", 10, 1000), "wide characters take two columns")
	copied := "vramyard replay --strategy bfc --config '{\"limit\":8192}' TRACE\n    export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
	assert.Equal(t, copied, fit(t, copied, 20, 1000), "what is to be copied stays in one line")
	assert.Equal(t, "no end", fit(t, "no end", 20, 3))
}

// TestLongLabelsAreBroken folds a first column of words, whose rows go on below each other, and not within a word.
func TestLongLabelsAreBroken(t *testing.T) {
	var b strings.Builder
	f := report.Fit(&b, 74)
	_, err := io.WriteString(f, `┌──────────────────────────────────────────────────────────┬──────────────┬─────────────────────────────────────────┐
│ setting                                                  │ min capacity │ notes                                   │
├──────────────────────────────────────────────────────────┼──────────────┼─────────────────────────────────────────┤
│ caching max_split_size_mb:1, roundup_power2_divisions:8, │    16.72 GiB │ as recorded, 23 OOMs on 16.00 GiB       │
│ large_segment_size_mb:32                                 │              │                                         │
│ slab                                                     │    14.03 GiB │                                         │
└──────────────────────────────────────────────────────────┴──────────────┴─────────────────────────────────────────┘
`)
	require.NoError(t, err)
	require.NoError(t, f.Flush())
	assert.Equal(t, `┌─────────────────────────────┬──────────────┬───────────────────────────┐
│ setting                     │ min capacity │ notes                     │
├─────────────────────────────┼──────────────┼───────────────────────────┤
│ caching                     │    16.72 GiB │ as recorded, 23 OOMs on   │
│ max_split_size_mb:1,        │              │ 16.00 GiB                 │
│ roundup_power2_divisions:8, │              │                           │
│ large_segment_size_mb:32    │              │                           │
│ slab                        │    14.03 GiB │                           │
└─────────────────────────────┴──────────────┴───────────────────────────┘
`, b.String())
	assert.Equal(t, 74, report.Columns(f, 100))
	assert.Equal(t, 100, report.Columns(&b, 100))
}
