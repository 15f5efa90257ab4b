package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Look is how a series is drawn.
type Look struct {
	Color  color.Color      // of lines, marks and bars
	Shape  draw.GlyphDrawer // of marks
	Dashes []vg.Length      // of lines, in points; nil for a whole one
	Width  vg.Length        // of lines, in points; 0 is the usual one
	small  bool             // marks have half the size
}

// Small returns the look with marks of half the size, for many of them.
func (l Look) Small() Look {
	l.small = true
	return l
}

// LookOf returns the look with a number from 0 on. Those of less than 32 differ, also in grey.
func LookOf(number int) Look {
	colors := Light()
	shapes := []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{},
		draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
	}
	dashes := [][]vg.Length{nil, {4, 1.5}, {1.2, 1.2}, {5, 1.2, 1.2, 1.2}}
	number = max(number, 0)
	turn := number / Turn
	return Look{
		Color: colors[number%len(colors)],
		// Shifted by three each turn, so that two of one colour differ in the mark too: they are two
		// turns apart.
		Shape:  shapes[(number+3*turn)%len(shapes)],
		Dashes: dashes[turn%len(dashes)],
	}
}

// MarkOf returns the look of marks with a number from 0 on, which are hollow first: two that meet
// are both seen.
func MarkOf(number int) Look {
	l := LookOf(number)
	shapes := []draw.GlyphDrawer{
		draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{},
		draw.PlusGlyph{}, draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{},
	}
	l.Shape = shapes[max(number, 0)%len(shapes)]
	return l
}

// Neutral returns the look of what is no strategy, such as a bound: grey and dashed.
func Neutral() Look {
	return Look{Color: color.RGBA{0x40, 0x40, 0x40, 0xff}, Shape: draw.CrossGlyph{}, Dashes: []vg.Length{3, 2},
		Width: thin}
}

// Card returns the look of the capacity of a card: a whole line in red.
func Card() Look {
	return Look{Color: color.RGBA{0xc0, 0x00, 0x00, 0xff}, Shape: draw.CrossGlyph{}, Width: usual}
}

// Alarm returns the look of what went wrong: upright strokes in red, a shape that nothing else has.
func Alarm() Look { return Look{Color: color.RGBA{0xc0, 0x00, 0x00, 0xff}, Shape: stroke{}} }

// stroke is an upright mark.
type stroke struct{}

func (stroke) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: s.Color, Width: usual}, at.X, at.Y-2*s.Radius, at.X, at.Y+2*s.Radius)
}
