package whatif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
)

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return tr
}

func TestRefusedRequestsAreDemand(t *testing.T) {
	w, err := whatif.Survey(read(t, "a 7 4KiB\nrefused 8KiB stream=3\nrefused 16KiB\nf 7\na 7 1MiB\n"))
	require.NoError(t, err)
	require.Equal(t, []device.Size{4 * device.KiB, 8 * device.KiB, 16 * device.KiB, device.MiB}, w.Demand.Sizes)
	require.False(t, w.Demand.Polls)
	require.Equal(t, 2, w.Streams)
	require.Equal(t, 2, w.Refusals.Count)
	require.False(t, w.Refusals.Died)
	w, err = whatif.Survey(read(t, "a 7 4KiB\npoll\nf 7\n"))
	require.NoError(t, err)
	require.True(t, w.Demand.Polls)
	w, err = whatif.Survey(read(t, "mark b\na 7 4KiB\nmark a\nmark b\n"))
	require.NoError(t, err)
	require.NoError(t, w.Marks.Check([]string{"a", "b"}, "t"))
	require.ErrorContains(t, w.Marks.Check([]string{"c"}, "t"), `the mark "c"`)
}
