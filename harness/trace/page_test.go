package trace_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageHasTheGrammar compares the lines of the text form in docs/traces.md with the list in the
// comment of the package.
func TestPageHasTheGrammar(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/traces.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(doc), "\n// The lines:\n//\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n//\n")
	var want, got []string
	for line := range strings.Lines(list) {
		line = strings.TrimPrefix(line, "//\t")
		want = append(want, regexp.MustCompile(`  +`).Split(line, 2)[0])
	}
	_, table, found := strings.Cut(string(page), "\n| line | event |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, strings.ReplaceAll(row[1], `\|`, "|"))
	}
	require.Equal(t, want, got)
}
