package trace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

// TestMarksCheckTheOrder has the phases a..b of a trace that runs b, a, b, a.
func TestMarksCheckTheOrder(t *testing.T) {
	var m trace.Marks
	for i, text := range []string{"b", "a", "b", "a", "c"} {
		m.Add(text, 10*i)
	}
	for _, ok := range [][]string{nil, {"a"}, {"a", "b"}, {"b", "a"}, {"a", "c"}} {
		require.NoError(t, m.Check(ok, "t"), "%q", ok)
	}
	require.EqualError(t, m.Check([]string{"c", "b"}, "t"), `a setting begins at the mark "c" (event 40 of t) and ends at `+
		`the mark "b" (event 20), which is earlier: want the earlier mark before the dots`)
	require.EqualError(t, m.Check([]string{"a", "d"}, "t"), `a setting changes at the mark "d": t has no such mark`)
}

// TestPhasesAreBetweenMarksThatOccurOnce has steps, which are no phases.
func TestPhasesAreBetweenMarksThatOccurOnce(t *testing.T) {
	var m trace.Marks
	require.Empty(t, m.Phases(8))
	for i, text := range []string{"load", "step", "loaded", "step", "end"} {
		m.Add(text, i)
	}
	require.Equal(t, [][2]string{{"load", "loaded"}, {"loaded", "end"}}, m.Phases(2))
	require.Empty(t, m.Phases(1))
}
