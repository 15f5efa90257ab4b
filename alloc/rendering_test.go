package alloc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
)

func TestRenderingOfNothing(t *testing.T) {
	require.Equal(t, "<allocator contains no memory>", inspect.Rendering(newToy(0)))
}

func TestRenderingShowsRequestedAndRounding(t *testing.T) {
	s := newToy(4) // 25 columns a cell
	for range 3 {
		_, err := s.Alloc(alloc.Request{Size: 256})
		require.NoError(t, err)
	}
	require.NoError(t, s.Free(toyBase+256))
	s.cells[2] = 1 // 1 of 256 bytes requested
	want := strings.Repeat("*", 25) + strings.Repeat("_", 25) + "*" + strings.Repeat("x", 24) + strings.Repeat("_", 25)
	require.Equal(t, want, inspect.Rendering(s))
}

func TestLaterChunksPaintOverEarlierOnes(t *testing.T) {
	s := newToy(300) // three cells a column
	for range 3 {
		_, err := s.Alloc(alloc.Request{Size: 256})
		require.NoError(t, err)
	}
	s.cells[2] = 1
	require.Equal(t, "*"+strings.Repeat("_", 99), inspect.Rendering(s))
}
