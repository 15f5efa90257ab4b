package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/view"
)

// TestGridPageMatchesTheCommand reads the result of a grid with a curve and one that
// completes nowhere.
func TestGridPageMatchesTheCommand(t *testing.T) {
	const head = `{"schema":"vramyard-remat/1","liveness":"eager","logs":[{"model":"m","log_sha256":"ab","base_peak_bytes":100}],"runs":[`
	number := func(string) int { return 0 }
	p, err := view.Result("a.json", []byte(head+`
		{"model":"m","log_sha256":"ab","strategy":"counting","ladder":"none","heuristic":"eq","ratio":1,"verdict":"ok","total_overhead":1},
		{"model":"m","log_sha256":"ab","strategy":"bfc","ladder":"none","heuristic":"eq","ratio":1,"verdict":"thrash","total_overhead":2},
		{"model":"m","log_sha256":"ab","strategy":"counting","ladder":"none","heuristic":"lru","ratio":1,"verdict":"thrash","total_overhead":2}]}`), number, nil)
	require.NoError(t, err)
	require.Len(t, p.Sheets, 5)
	require.Len(t, p.Plots, 1)
	require.Equal(t, "m by eq, ladder none: time over budget", p.Plots[0].Title)
	_, err = view.Result("a.json", []byte(head+`{"model":"n","strategy":"bfc","ratio":1}]}`), number, nil)
	require.ErrorContains(t, err, "a.json: ")
}
