package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"

	"github.com/vramyard/vramyard/harness/show/chart"
)

// sample returns a chart with one of everything, its series named.
func sample(name string) *chart.Chart {
	c := chart.New(chart.Counts("event", 30000), chart.Bytes("memory", 3<<30))
	points := []chart.Point{{X: 0, Y: 1 << 30}, {X: 20000, Y: 3 << 30}, {X: 30000, Y: 2 << 30}}
	c.Line(chart.Line{Name: name, Look: chart.LookOf(0), Points: points, Steps: true, Marks: 4})
	c.Line(chart.Line{Name: "points", Look: chart.LookOf(9), Points: points, Marks: -1})
	c.Marks("marks", chart.Alarm(), points[:1])
	c.HorizontalLine("level", chart.Neutral(), 2<<30)
	c.VerticalLine("upright", chart.Neutral(), 100)
	return c
}

// written returns a chart as a file.
func written(t *testing.T, c *chart.Chart, f chart.Format) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, c.Write(&b, f, chart.Page{Width: chart.OneColumn, Font: 8}))
	return b.Bytes()
}

func TestFilesAreTheSameWheneverTheyAreWritten(t *testing.T) {
	for _, f := range []chart.Format{chart.SVG, chart.PDF, chart.PNG} {
		assert.Equal(t, written(t, sample("a"), f), written(t, sample("a"), f), f)
	}
	assert.NotContains(t, string(written(t, sample("a"), chart.PDF)), "Date", "a file that was made at another time "+
		"would differ")
}

func TestFilesHoldTheirFonts(t *testing.T) {
	pdf, svg := written(t, sample("a"), chart.PDF), written(t, sample("a"), chart.SVG)
	assert.Contains(t, string(pdf), "/FontFile2")
	assert.Less(t, len(pdf), 25_000)
	assert.Contains(t, string(svg), "font/ttf")
	assert.Less(t, len(svg), 40_000)
	var linked bytes.Buffer
	require.NoError(t, sample("a").Write(&linked, chart.SVG, chart.Page{Width: chart.OneColumn, Font: 8, Linked: true}))
	assert.Less(t, linked.Len(), 20_000)
}

func TestBitmapsSayHowLargeTheyAre(t *testing.T) {
	file := written(t, sample("a"), chart.PNG)
	img, err := png.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	assert.Equal(t, 1004, img.Bounds().Dx(), "8.5 cm at 300 dots to the inch")
	assert.Contains(t, string(file[:80]), "pHYs\x00\x00\x2e\x23\x00\x00\x2e\x23\x01")
}

func TestHostileNamesAreText(t *testing.T) {
	const name = `</text><script>alert("x")</script>&amp;` + "\u00b5\u4e2d"
	d := xml.NewDecoder(bytes.NewReader(written(t, sample(name), chart.SVG)))
	shown := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			assert.NotEqual(t, "script", token.Name.Local)
		case xml.CharData:
			shown = shown || string(token) == name
		}
	}
	assert.True(t, shown, "the name is there as it is")
	written(t, sample(name), chart.PDF)
	written(t, sample(name), chart.PNG)
}

func TestTicksAreRoundAndWithinTheAxis(t *testing.T) {
	for name, a := range map[string]chart.Axis{
		"bytes": chart.Bytes("x", 57.7*(1<<30)), "one byte": chart.Bytes("x", 1), "nothing": chart.Bytes("x", 0),
		"counts": chart.Counts("x", 61444), "one": chart.Counts("x", 0), "all": chart.Percent("x", 1),
		"few": chart.Percent("x", 0.0012),
		"log": chart.Log("x", 70, 450), "wide": chart.Log("x", 1, 1e7), "point": chart.Log("x", 5, 5),
		"between": chart.Between("x", 1, 1.28), "equal": chart.Between("x", 1, 1),
	} {
		labelled := 0
		for _, tick := range a.Ticks {
			assert.True(t, tick.Value >= a.Low*(1-1e-9) && tick.Value <= a.High*(1+1e-9) || name == "counts" || name == "one",
				"%s: %v in %v to %v", name, tick, a.Low, a.High)
			if tick.Label != "" {
				labelled++
			}
		}
		assert.True(t, a.Low < a.High, name)
		assert.True(t, labelled >= 1 && labelled <= 9, "%s: %d labels", name, labelled)
	}
	for _, tick := range chart.Between("x", -1, 2).Ticks {
		assert.NotEqual(t, "-0", tick.Label)
	}
	assert.Equal(t, "x (GiB)", chart.Bytes("x", 1<<30).Title)
	assert.Equal(t, "x (KiB)", chart.Bytes("x", 1<<20-1).Title)
	assert.InDelta(t, 1, chart.Percent("x", 0.99).High, 0, "no share is above all")
}

func TestLooksDifferWithoutColour(t *testing.T) {
	colors := chart.Light()
	seen := map[string]int{}
	for i := range 4 * chart.PerMark {
		l := chart.LookOf(i)
		key := fmt.Sprintf("%T %v", l.Shape, l.Dashes)
		if before, ok := seen[key]; ok {
			t.Errorf("looks %d and %d are the same in grey: %s", before, i, key)
		}
		seen[key] = i
		assert.Equal(t, colors[i%len(colors)], l.Color)
	}
}

func TestPagesThatAreTooSmallAreRefused(t *testing.T) {
	err := sample("a").Write(io.Discard, chart.PDF,
		chart.Page{Width: 3 * vg.Centimeter, Height: 2 * vg.Centimeter, Font: 20})
	assert.ErrorContains(t, err, "the figure does not fit 3.0 x 2.0 cm")
	c := chart.New(chart.FromZero("x", 1), chart.Rows(strings.Split(strings.Repeat("row ", 40), " ")))
	assert.ErrorContains(t, c.Write(io.Discard, chart.PDF, chart.Page{Width: chart.OneColumn, Height: 4 * vg.Centimeter,
		Font: 8}), "does not fit")
}

// drawnTexts returns the texts of a chart, each with its font and start position.
func drawnTexts(t *testing.T, c *chart.Chart, p chart.Page) map[string]float64 {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, c.Write(&b, chart.SVG, p))
	at := map[string]float64{}
	for _, m := range regexp.MustCompile(`<text x="([-0-9.]+)"[^>]*>([^<]*)</text>`).FindAllStringSubmatch(
		b.String(), -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		at[m[2]] = x
	}
	return at
}

func TestLabelsThatWouldTouchAreLeftOut(t *testing.T) {
	page := chart.Page{Width: chart.OneColumn, Font: 8, Linked: true}
	wide := drawnTexts(t, chart.New(chart.Between("x", 1, 1.08), chart.FromZero("y", 1)), page)
	page.Font = 16
	narrow := drawnTexts(t, chart.New(chart.Between("x", 1, 1.08), chart.FromZero("y", 1)), page)
	for label, kept := range map[string]bool{"1.01": false, "1.02": true, "1.03": false} {
		assert.Contains(t, wide, label)
		assert.Equal(t, kept, narrow[label] > 0, "%s in %v", label, narrow)
	}
}

// TestLegendsFitOtherFonts compares the second column of a legend with and without the font.
func TestLegendsFitOtherFonts(t *testing.T) {
	const first, second = "caching by eq with defrag-first", "slab"
	at := map[bool]float64{}
	for _, linked := range []bool{false, true} {
		c := chart.New(chart.FromZero("x", 1), chart.FromZero("y", 1))
		c.Note(first)
		c.Note(second)
		texts := drawnTexts(t, c, chart.Page{Width: chart.TwoColumns, Font: 9, Linked: linked})
		at[linked] = texts[second] - texts[first]
	}
	assert.InDelta(t, 25, at[true]-at[false], 5, "a fifth of the name's width more")
}

// TestLabelsCoverNothing labels the steps of a front: the first point is in the corner, the
// second is among marks, and the last two are one.
func TestLabelsCoverNothing(t *testing.T) {
	c := chart.New(chart.FromZero("x", 1), chart.FromZero("y", 1))
	points := []chart.Point{{X: 0, Y: 1.22}, {X: 0.4, Y: 0.6}, {X: 0.8, Y: 0.3}, {X: 0.8, Y: 0.3}}
	c.Line(chart.Line{Look: chart.Neutral(), Points: points, Steps: true})
	var around []chart.Point
	for k := range 21 {
		x := 0.2 + 0.02*float64(k)
		around = append(around, chart.Point{X: x, Y: 0.55}, chart.Point{X: x, Y: 0.65})
	}
	c.Marks("", chart.LookOf(0), around)
	for i, p := range points {
		c.Label(fmt.Sprint("point ", i), p)
	}
	page := chart.Page{Width: chart.OneColumn, Font: 8, Linked: true}
	at := drawnTexts(t, c, page)
	assert.NotContains(t, at, "point 1", "there is no room")
	assert.Greater(t, at["point 0"], at["0"], "below the first step")
	assert.Greater(t, at["point 3"], at["point 2"]+2*8, "on the other side of the same point")
}

func TestTitlesAreWithinThePage(t *testing.T) {
	const title = "minimum capacity / lower bound"
	rows := chart.Rows([]string{"a name that takes half of the page"})
	page := chart.Page{Width: chart.OneColumn, Font: 8, Linked: true}
	x := drawnTexts(t, chart.New(chart.FromZero(title, 1), rows), page)[title]
	assert.Less(t, x+8*0.5*float64(len(title)), float64(chart.OneColumn), "the end of the title is on the page")
	c := chart.New(chart.FromZero("x", 1), chart.FromZero(strings.Repeat("long ", 12), 1))
	require.NoError(t, c.Write(io.Discard, chart.SVG, chart.Page{Width: chart.OneColumn, Font: 8}),
		"the page grows with the title")
	c = chart.New(chart.FromZero("x", 1), chart.FromZero(strings.Repeat("long ", 12), 1))
	assert.ErrorContains(t, c.Write(io.Discard, chart.SVG, chart.Page{Width: chart.OneColumn, Height: 5 * vg.Centimeter,
		Font: 8}), "does not fit")
	c = chart.New(chart.FromZero(strings.Repeat("long ", 20), 1), chart.FromZero("y", 1))
	assert.ErrorContains(t, c.Write(io.Discard, chart.SVG, chart.Page{Width: chart.OneColumn, Font: 8}),
		"the figure does not fit a width of 8.5 cm at a font size of 8 points")
}

// TestMarksLieOnAllLines draws two lines at one place: the marks of the lower one come behind the
// upper one.
func TestMarksLieOnAllLines(t *testing.T) {
	c := chart.New(chart.FromZero("x", 1), chart.FromZero("y", 1))
	for i := range 2 {
		c.Line(chart.Line{Look: chart.LookOf(i), Points: []chart.Point{{X: 0, Y: 1}, {X: 1, Y: 1}}, Marks: 4, Shift: 3 * i})
	}
	var b bytes.Buffer
	require.NoError(t, c.Write(&b, chart.SVG, chart.Page{Width: chart.OneColumn, Font: 8, Linked: true}))
	first, last := strings.Index(b.String(), "fill:"+hue(0)), strings.LastIndex(b.String(), "fill:none;stroke:"+hue(1))
	require.Positive(t, last)
	assert.Greater(t, first, last)
}

func TestSizesAndFormatsAreRead(t *testing.T) {
	w, h, err := chart.ParseSize("two")
	require.NoError(t, err)
	assert.Equal(t, []vg.Length{chart.TwoColumns, 0}, []vg.Length{w, h})
	w, h, err = chart.ParseSize("8.5 x 6cm")
	require.NoError(t, err)
	assert.InDelta(t, 8.5/2.54*72, float64(w), 1e-9)
	assert.InDelta(t, 6/2.54*72, float64(h), 1e-9)
	w, h, err = chart.ParseSize("12")
	require.NoError(t, err)
	assert.Equal(t, []vg.Length{12 * vg.Centimeter, 0}, []vg.Length{w, h})
	for _, bad := range []string{"", "three", "8x", "x8", "1x1", "8x101", "NaNx5", "8x6x2", "-8x6", "8.5x6in"} {
		_, _, err := chart.ParseSize(bad)
		assert.ErrorContains(t, err, `want "one" or "two"`, bad)
	}
	f, err := chart.FormatOf("a/b.PDF")
	require.NoError(t, err)
	assert.Equal(t, chart.PDF, f)
	for _, bad := range []string{"", "-", "a", "a.eps", "a.svg.gz"} {
		_, err := chart.FormatOf(bad)
		assert.ErrorContains(t, err, "want a name that ends in", bad)
	}
}

func TestColoursAreDistinguishable(t *testing.T) {
	colors := chart.Light()
	assert.Len(t, chart.Dark(), len(colors), "of every strategy")
	for i, a := range colors {
		for _, b := range colors[:i] {
			d := math.Hypot(math.Hypot(float64(a.R)-float64(b.R), float64(a.G)-float64(b.G)), float64(a.B)-float64(b.B))
			assert.Greater(t, d, 60.0, "%v and %v", a, b)
		}
	}
}

// hue returns a colour of the palette as SVG files write it.
func hue(number int) string {
	c := chart.Light()[number]
	return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)
}

// TestColoursAreSeen checks that lines have the contrast with their background that WCAG 2.2
// requires of graphics.
func TestColoursAreSeen(t *testing.T) {
	for name, theme := range map[string]struct {
		colors []color.RGBA
		paper  color.RGBA
	}{
		"light": {chart.Light(), color.RGBA{0xff, 0xff, 0xff, 0xff}},
		"dark":  {chart.Dark(), color.RGBA{0x14, 0x17, 0x1b, 0xff}},
	} {
		for _, c := range theme.colors {
			a, b := luminance(c), luminance(theme.paper)
			assert.GreaterOrEqual(t, (max(a, b)+0.05)/(min(a, b)+0.05), 3.0, "%s: %v", name, c)
		}
	}
}

// luminance is WCAG's relative luminance.
func luminance(c color.RGBA) float64 {
	linear := func(n uint8) float64 {
		if v := float64(n) / 255; v > 0.04045 {
			return math.Pow((v+0.055)/1.055, 2.4)
		}
		return float64(n) / 255 / 12.92
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}
