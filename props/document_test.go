package props_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props"
)

// TestDocumentListsEveryInvariant keeps docs/invariants.md and the code the same.
func TestDocumentListsEveryInvariant(t *testing.T) {
	text, err := os.ReadFile("../docs/invariants.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (I\d+) \|`).FindAllSubmatch(text, -1) {
		require.False(t, documented[string(row[1])], "%s has two rows", row[1])
		documented[string(row[1])] = true
	}
	for n := range props.Numbers {
		require.True(t, documented[n.String()], "%v (%s) is not in docs/invariants.md", n, n.Name())
		delete(documented, n.String())
		require.NotEqual(t, "unknown", n.Name())
		require.NotEmpty(t, n.Name())
	}
	require.Empty(t, documented, "documented and not in the code")
	mentioned := regexp.MustCompile(`\bI\d+\b`).FindAllString(string(text), -1)
	for _, m := range mentioned {
		require.Contains(t, numbers(), m)
	}
}

// numbers returns every invariant as documents write it.
func numbers() (all []string) {
	for n := range props.Numbers {
		all = append(all, n.String())
	}
	return all
}
