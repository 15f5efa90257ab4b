package parquet_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/parquet"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of the page; review the difference")

// TestPageHasTheSchema holds the tables in docs/traces.md to the schema in the code.
func TestPageHasTheSchema(t *testing.T) {
	const (
		page  = "../../../docs/traces.md"
		begin = "<!-- schema: written by go test ./harness/trace/parquet -run TestPage -rewrite -->\n"
		end   = "<!-- /schema -->"
	)
	var want strings.Builder
	want.WriteString("| column | type | what it holds |\n|---|---|---|\n")
	for _, c := range parquet.Columns() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", c.Name, c.Type, c.Doc)
	}
	want.WriteString("\n| metadata | what it holds |\n|---|---|\n")
	for _, k := range parquet.Keys() {
		fmt.Fprintf(&want, "| `%s` | %s |\n", k.Name, k.Doc)
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	got, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+want.String()+end+after), 0o600))
		return
	}
	require.Equal(t, want.String(), got, "go test ./harness/trace/parquet -run TestPage -rewrite renews it")
}
