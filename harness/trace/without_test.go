package trace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

// TestWithout leaves out allocations by number, also where an ID is used again.
func TestWithout(t *testing.T) {
	t.Parallel()
	const text = "a 1 1KiB\na 2 2KiB\nuse 2 7\nf 2\na 2 3KiB\nf 1\na 3 4KiB\nf 2\n"
	src, err := trace.Read(strings.NewReader(text), "x.txt", trace.Options{})
	require.NoError(t, err)
	for _, s := range []trace.Source{src, streamed{src}} {
		require.Equal(t, "mark 0B, alloc 2KiB, use 0B, free 0B, alloc 3KiB, mark 0B, mark 0B, free 0B",
			kindsOf(t, trace.Without(s, map[uint64]struct{}{1: {}, 4: {}})))
		require.Equal(t, "alloc 1KiB, mark 0B, mark 0B, mark 0B, alloc 3KiB, free 0B, alloc 4KiB, free 0B",
			kindsOf(t, trace.Without(s, map[uint64]struct{}{2: {}, 9: {}})))
	}
}
