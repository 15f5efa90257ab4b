package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Look is the style of a series.
type Look struct {
	Color  color.Color      // of lines, marks and bars
	Shape  draw.GlyphDrawer // of marks
	Dashes []vg.Length      // of lines, in points; nil: solid
	Width  vg.Length        // of lines, in points; 0: the default
	small  bool             // marks of half the size
}

// Small returns the look with marks of half the size.
func (l Look) Small() Look {
	l.small = true
	return l
}

// LookOf returns look number 0, 1, …. Below 32 all differ, in grey too.
func LookOf(number int) Look {
	colors := Light()
	shapes := []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{},
		draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
	}
	dashes := [][]vg.Length{nil, {4, 1.5}, {1.2, 1.2}, {5, 1.2, 1.2, 1.2}}
	number = max(number, 0)
	turn := number / PerMark
	return Look{
		Color: colors[number%len(colors)],
		// shifted by three in each turn, so that looks of the same colour differ in shape
		Shape:  shapes[(number+3*turn)%len(shapes)],
		Dashes: dashes[turn%len(dashes)],
	}
}

// MarkOf returns the look of marks number 0, 1, …. The first are hollow, so that overlapping
// marks stay visible.
func MarkOf(number int) Look {
	l := LookOf(number)
	shapes := []draw.GlyphDrawer{
		draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{},
		draw.PlusGlyph{}, draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{},
	}
	l.Shape = shapes[max(number, 0)%len(shapes)]
	return l
}

// Neutral returns the look of references such as a lower bound: dashed grey.
func Neutral() Look {
	return Look{Color: color.RGBA{0x40, 0x40, 0x40, 0xff}, Shape: draw.CrossGlyph{}, Dashes: []vg.Length{3, 2},
		Width: boundWidth}
}

// Card returns the look of a card's capacity: solid red.
func Card() Look {
	return Look{Color: color.RGBA{0xc0, 0x00, 0x00, 0xff}, Shape: draw.CrossGlyph{}, Width: lineWidth}
}

// Alarm returns the look of failures: vertical red strokes.
func Alarm() Look { return Look{Color: color.RGBA{0xc0, 0x00, 0x00, 0xff}, Shape: stroke{}} }

// stroke is a vertical mark.
type stroke struct{}

func (stroke) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: s.Color, Width: lineWidth}, at.X, at.Y-2*s.Radius, at.X, at.Y+2*s.Radius)
}
