package torch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOverlapsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		b            *builder
		count, entry int
		addr         uint64
	}{
		"beside each other": {one().alloc(0, 512).alloc(512, 512).free(0, 512).alloc(0, 256).alloc(256, 256), 0, 0, 0},
		"in a live one":     {one().alloc(0, 2048).alloc(4096, 512).alloc(1024, 512), 1, 2, 1024},
		"over a live one":   {one().alloc(1024, 512).alloc(512, 1024), 1, 1, 512},
		"in a pending one":  {one().alloc(0, 2048).request(0, 2048).alloc(512, 512).complete(0, 2048), 1, 2, 512},
		"two":               {one().alloc(0, 2048).alloc(512, 512).free(512, 512).alloc(1024, 512), 2, 1, 512},
		// the history lacks the free of the first, so it ends where its address is used again
		"a lost free": {one().alloc(0, 2048).alloc(0, 512).alloc(1024, 512), 0, 0, 0},
		// freed in the history, so it was live at its start
		"with an opening one": {one().alloc(512, 512).free(0, 1024), 1, 0, 512},
	} {
		count, entry, addr := c.b.result(t).Timeline.Overlaps()
		require.Equal(t, c.count, count, name)
		require.Equal(t, c.entry, entry, name)
		require.Equal(t, c.addr, addr, name)
	}
}

func TestFindingsHaveChecks(t *testing.T) {
	checks := map[string]bool{}
	r := one().alloc(0, 512).alloc(0, 512).free(9999, 5).result(t).Report
	for _, f := range r.Findings {
		checks[f.Check()] = true
	}
	require.Equal(t, map[string]bool{"ghost": true, "balance": true}, checks)
}
