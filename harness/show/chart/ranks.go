package chart

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// Need is the memory that a rank needs, in two parts.
type Need struct {
	Name string      // of the rank
	Live device.Size // live bytes
	Rest device.Size // rounding and fragmentation
}

// Needs draws the memory that each rank needs as a bar in two parts, beside the capacity of the
// card; 0: unknown. Beyond 256 ranks it draws the first 256.
func Needs(ranks []Need, card device.Size) *Chart {
	drawn := ranks[:min(len(ranks), mostSeries)]
	high := card
	var names, beside []string
	for _, r := range drawn {
		high = max(high, r.Live+r.Rest)
		names = append(names, r.Name)
		beside = append(beside, units.Bytes(r.Live+r.Rest))
	}
	short := shortened(names)
	for i, n := range names {
		names[i] = short[n]
	}
	c := New(Bytes("memory", float64(high)), Rows(names))
	live, rest := LookOf(0), LookOf(1)
	for i, r := range drawn {
		c.Bar(i, rest, float64(r.Live+r.Rest))
		c.Bar(i, live, float64(r.Live))
	}
	c.RowTexts(beside)
	c.LegendMark("live bytes", live)
	c.LegendMark("rounding and fragmentation", rest)
	if card > 0 {
		c.VerticalLine("card, "+units.Bytes(card), Card(), float64(card))
	}
	if n := len(ranks) - len(drawn); n > 0 {
		c.Note(fmt.Sprintf("%d more ranks are not drawn", n))
	}
	return c
}
