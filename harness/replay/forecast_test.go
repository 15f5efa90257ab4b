package replay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// TestForecastHasTheCallsOfAReplay lists the forecast of a trace with every kind of call, and with
// events that are none.
func TestForecastHasTheCallsOfAReplay(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("live 9 50 stream=2\nmark begin\na 4 100 align=512 tag=w site=0xab thread=3 "+
		"life=step\ntrim\nrefused 7\nf 9\na 9 60\nf 4\ndone 4\n"), "t.trace", trace.Options{})
	require.NoError(t, err)
	f, err := replay.ForecastOf(tr)
	require.NoError(t, err)
	want := []power.Expected{
		{Request: alloc.Request{Size: 50, Stream: 2, ID: 9}, Other: 5},
		{Kind: power.ExpectMark, Other: -1, Mark: "begin"},
		{Request: alloc.Request{Size: 100, Align: 512, ID: 4, Origin: alloc.OriginOf(0xab, 3).WithLifetime(alloc.LifeStep)},
			Other: 7},
		{Request: alloc.Request{Size: 7, ID: 10}, Other: 4}, // refused, so freed at once
		{Kind: power.ExpectFree, Other: 3},
		{Kind: power.ExpectFree, Other: 0},
		{Request: alloc.Request{Size: 60, ID: 9}, Other: -1},
		{Kind: power.ExpectFree, Other: 2},
	}
	for range 2 { // it can be walked again
		var got []power.Expected
		for x := range f {
			got = append(got, x)
		}
		require.Equal(t, want, got)
	}
	for x := range f {
		require.Equal(t, want[0], x)
		break
	}
	tr.Header.Meta = append(tr.Header.Meta, trace.Pair{Key: replay.TagsKey, Value: "texts"})
	_, err = replay.ForecastOf(tr)
	require.ErrorContains(t, err, "request-tags=texts: want ids")
}
