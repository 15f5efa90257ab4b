package chart_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/chart"
)

// TestNeedsAreStacked draws ranks beside a card, and leaves out the ones that do not fit a figure.
func TestNeedsAreStacked(t *testing.T) {
	ranks := []chart.Need{{"rank_0", 9 * device.GiB, device.GiB / 2}, {"rank_1", 10 * device.GiB, device.GiB}}
	text := string(written(t, chart.Needs(ranks, 12*device.GiB), chart.SVG))
	for _, want := range []string{"rank_0", "rank_1", "9.50 GiB", "11.00 GiB", "card, 12.00 GiB", "live bytes",
		"rounding and fragmentation"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, string(written(t, chart.Needs(ranks, 0), chart.SVG)), "card,")

	for i := range 300 {
		ranks = append(ranks, chart.Need{Name: fmt.Sprintf("more_%d", i), Live: device.GiB})
	}
	text = string(written(t, chart.Needs(ranks, 0), chart.SVG))
	require.Contains(t, text, "46 more ranks are not drawn")
	require.Equal(t, 254, strings.Count(text, ">more_"))
}
