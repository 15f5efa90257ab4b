package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props"
)

// FuzzParseSequence checks that what was understood of a text is written so that it is
// understood as a whole, and as the same.
func FuzzParseSequence(f *testing.F) {
	for _, seed := range []string{
		"a 1\nf 0\nbadfree freed 1\nbadfree inside 2\nbadfree foreign 3\nbadfree null\ntrim\nfrontier 4\nclear\nfault 5\n",
		"a 18446744073709551615 align=3 stream=4294967295 hint=high before=7\n", "a\nb 1\n\n  f  7 x\na 1 hint=none " +
			"hint=low\n",
		"badfree", "a 1 align", "a -1", "f 18446744073709551616",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seq, _ := props.ParseSequence(text) // as far as it goes
		again, err := props.ParseSequence(seq.Lines())
		require.NoError(t, err, "%s", seq.Lines())
		require.Equal(t, seq, again)
	})
}
