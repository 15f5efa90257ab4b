package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/replay"
)

// TestHistogramsSurviveGob encodes one and reads it, whole and cut anywhere.
func TestHistogramsSurviveGob(t *testing.T) {
	var h, again replay.Histogram
	for i := range int64(500) {
		h.Add(i * i * i)
	}
	b, err := h.GobEncode()
	require.NoError(t, err)
	require.NoError(t, again.GobDecode(b))
	require.Equal(t, h, again)
	for n := range b {
		if again.GobDecode(b[:n]) == nil {
			require.NotEqual(t, h, again)
		}
	}
	require.Error(t, again.GobDecode([]byte{2, 0xff, 0xff, 0xff, 1, 1}))
}
