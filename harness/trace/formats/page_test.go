package formats_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/formats"
)

// TestPageListsEveryFormat holds the table in docs/traces.md to the table in the code.
func TestPageListsEveryFormat(t *testing.T) {
	const page = "../../../docs/traces.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), "<!-- formats: ")
	require.True(t, ok)
	how, rest, ok := strings.Cut(rest, "-->\n")
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, "<!-- /formats -->")
	require.True(t, ok)

	var want strings.Builder
	want.WriteString("| format | description | written | not in the file |\n|---|---|---|---|\n")
	for _, f := range formats.All() {
		written := ""
		if f.Write != nil {
			written = "yes"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.Name, f.Doc, written, f.Absent)
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(before+"<!-- formats: "+how+"-->\n"+want.String()+"<!-- /formats -->"+
			after), 0o600))
		return
	}
	require.Equal(t, want.String(), table, "go test ./harness/trace/formats -run TestPage -rewrite renews it")
}
