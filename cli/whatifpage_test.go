package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePageOfWhatifQuotesIt holds docs/whatif.md to what the command says of the recordings that
// the page names.
func TestThePageOfWhatifQuotesIt(t *testing.T) {
	raw, err := os.ReadFile("../docs/whatif.md")
	require.NoError(t, err)
	page := string(raw)
	said := succeed(t, "whatif", "../examples/oom/chat.pickle.gz")
	answer, _, found := strings.Cut(said, "\nrecorded ")
	require.True(t, found)
	require.Contains(t, page, "```\n"+strings.TrimSpace(answer)+"\n```")
	rows := regexp.MustCompile("(?m)^\\| `examples/oom/([a-z]+\\.pickle\\.gz)` \\| (.*) \\|$").FindAllStringSubmatch(page,
		-1)
	require.Len(t, rows, 3)
	for _, row := range rows {
		said := strings.Join(strings.Fields(succeed(t, "whatif", "../examples/oom/"+row[1])), " ")
		require.True(t, strings.HasPrefix(said, row[2]), "%s: %.200s", row[1], said)
	}
	require.Contains(t, page, "needs 15.77 GiB with the same setting")
	require.Contains(t, succeed(t, "compare", "--strategies", "caching:expandable", "../examples/oom/chat.trace.gz"),
		"│    15.77 GiB │")
}

// TestDiffReadsWhatif compares an answer with itself.
func TestDiffReadsWhatif(t *testing.T) {
	file := t.TempDir() + "/whatif.json"
	succeed(t, "whatif", "../examples/oom/layouts.pickle.gz", "--json", file)
	out := succeed(t, "diff", file, file, "--fail-if", "completes_at_bytes>+2%", "--fail-if",
		"min_capacity_bytes>+0@caching*")
	require.Contains(t, out, "no figure differs\n")
	require.Contains(t, out, "completes_at_bytes>+2%: kept")
}
