package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSentencesKeepTheirLinks has a sentence of an answer that ends with a link, alone and as a
// line of a text, and texts without end.
func TestSentencesKeepTheirLinks(t *testing.T) {
	sentence := strings.Repeat("a reason ", 40) + "https://github.com/vllm-project/vllm/pull/41237"
	lines := sentence + "\n" + sentence
	got, err := trimmed([]string{sentence, strings.Repeat("x", mostSentence+1), lines,
		strings.Repeat("a\t\n", mostItems+1)})
	require.NoError(t, err)
	require.Equal(t, []any{sentence, strings.Repeat("x", mostSentence) + "…", lines,
		strings.Repeat("a\uFFFD\n", mostItems-1) + "a\uFFFD"}, got)
}
