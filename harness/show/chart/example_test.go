package chart_test

import (
	"bytes"
	"fmt"

	"github.com/vramyard/vramyard/harness/show/chart"
)

func ExampleChart() {
	c := chart.New(chart.Counts("event", 3), chart.Bytes("reserved", 8<<20))
	points := []chart.Point{{X: 0, Y: 2 << 20}, {X: 3, Y: 8 << 20}}
	c.Line(chart.Line{Name: "caching", Look: chart.LookOf(0), Points: points})
	var text bytes.Buffer
	if err := c.Write(&text, chart.SVG, chart.Page{Width: chart.OneColumn, Font: 8, Linked: true}); err != nil {
		panic(err)
	}
	fmt.Println(bytes.Contains(text.Bytes(), []byte("caching")))
	// Output: true
}
