package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompareMeasuresWhereItCompletes has many streams, for each of which caching reserves a
// region: four times the live bytes are too little.
func TestCompareMeasuresWhereItCompletes(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "a %d 4096 stream=%d\n", i, i)
	}
	text := succeed(t, "compare", "--strategies", "async,caching", write(t, "t.trace", b.String()))
	require.True(t, strings.HasPrefix(text, "async completes t with least memory: 4.00 MiB; caching needs "+
		"500.00 × as much (1.95 GiB).\n"), text)
	require.NotContains(t, text, "FAILED")
}

// TestCompareKeepsTheRecordedCard compares on the card of the recording as if it had been named.
func TestCompareKeepsTheRecordedCard(t *testing.T) {
	dir := t.TempDir()
	own, named := filepath.Join(dir, "own.json"), filepath.Join(dir, "named.json")
	compare := []string{"compare", "--strategies", "bfc,tlsf", "../examples/oom/layouts.pickle.gz", "--json"}
	succeed(t, append(compare, own)...)
	succeed(t, append(compare, named, "--device", "sim:32GiB")...)
	require.NotContains(t, succeed(t, "diff", own, named), "device")
}
