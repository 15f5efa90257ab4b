package chart

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/image/font/opentype"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Format is a format of files.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PDF Format = "pdf"
	PNG Format = "png" // 300 dpi, stated in the file
)

// dotsPerInch is the resolution that journals require.
const dotsPerInch = 300

// FormatOf returns the format for a file's extension.
func FormatOf(path string) (Format, error) {
	ext := strings.ToLower(filepath.Ext(path))
	switch f := Format(strings.TrimPrefix(ext, ".")); f {
	case SVG, PDF, PNG:
		return f, nil
	}
	return "", fmt.Errorf("%q: want a name that ends in .svg, .pdf or .png", path)
}

// Page is the page of a chart. Lengths are in points.
type Page struct {
	Width  vg.Length // total width
	Height vg.Length // total height; 0: natural
	Font   vg.Length // font size
	Linked bool      // an SVG refers to its font instead of embedding a subset, 15 KiB smaller
}

// Column widths of most journals and proceedings.
const (
	OneColumn  = 8.5 * vg.Centimeter
	TwoColumns = 17.8 * vg.Centimeter
)

var errSize = errors.New(
	`want "one" or "two" columns, or a width in cm such as "12", or with the height, "8.5x6", each from 2 to 100`)

// ParseSize parses a page size: "one" or "two" columns, a width, or a width and height, in
// centimetres. The height is 0 if not given.
func ParseSize(s string) (width, height vg.Length, err error) {
	switch s {
	case "one":
		return OneColumn, 0, nil
	case "two":
		return TwoColumns, 0, nil
	}
	sides := strings.Split(strings.TrimSuffix(s, "cm"), "x")
	if len(sides) > 2 {
		return 0, 0, errSize
	}
	var cm [2]float64
	for i, side := range sides {
		cm[i], err = strconv.ParseFloat(strings.TrimSpace(side), 64)
		if err != nil || !(cm[i] >= 2 && cm[i] <= 100) {
			return 0, 0, errSize
		}
	}
	return vg.Length(cm[0]) * vg.Centimeter, vg.Length(cm[1]) * vg.Centimeter, nil
}

// Write draws and writes the chart. It fails if the page is too small. It can be called once.
func (c *Chart) Write(w io.Writer, f Format, p Page) error {
	l := c.layout(p)
	natural := l.preferredHeight(p.Width)
	if p.Height == 0 {
		p.Height = natural
	}
	var drawn recorder.Canvas
	if !l.draw(draw.NewCanvas(&drawn, p.Width, p.Height)) {
		if p.Height >= natural { // more height would not help
			return fmt.Errorf("the figure does not fit a width of %.1f cm at a font size of %g points: want a wider page "+
				"or a smaller font",
				p.Width/vg.Centimeter, float64(p.Font))
		}
		return fmt.Errorf("the figure does not fit %.1f x %.1f cm: want a height of about %.1f cm at this width and font",
			p.Width/vg.Centimeter, p.Height/vg.Centimeter, natural/vg.Centimeter)
	}
	canvas := canvasOf(f, p)
	if err := paint(canvas, drawn.Actions, f != PNG && !p.Linked); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(finish(f, b.Bytes()))
	return err
}

// paint replays recorded actions of one typeface on a canvas. With part, fonts are reduced to the
// characters used.
func paint(on vg.Canvas, actions []recorder.Action, part bool) error {
	chars := map[rune]bool{'?': true} // replaces characters that PDF lacks
	for _, a := range actions {
		if text, ok := a.(*recorder.FillString); ok {
			for _, r := range text.String {
				chars[r] = true
			}
		}
	}
	var small *opentype.Font // the subset
	for _, a := range actions {
		text, ok := a.(*recorder.FillString)
		if !ok {
			a.ApplyTo(on)
			continue
		}
		face := plot.DefaultTextHandler.Cache().Lookup(text.Font, text.Size)
		if part {
			if small == nil {
				var err error
				if small, err = subset(face.Face, chars); err != nil {
					return err
				}
			}
			face.Face = small
		}
		on.FillString(face, text.Point, text.String)
	}
	return nil
}

// sizedWriter is a canvas that can be written to a file.
type sizedWriter interface {
	vg.CanvasSizer
	io.WriterTo
}

func canvasOf(f Format, p Page) sizedWriter {
	switch f {
	case PDF:
		return latinCanvas{vgpdf.New(p.Width, p.Height)}
	case PNG:
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(p.Width, p.Height), vgimg.UseDPI(dotsPerInch))}
	}
	return vgsvg.NewWith(vgsvg.UseWH(p.Width, p.Height), vgsvg.EmbedFonts(!p.Linked))
}

// latinCanvas is a PDF canvas in the encoding that the library declares.
type latinCanvas struct{ *vgpdf.Canvas }

// FillString implements [vg.Canvas]. Characters outside the encoding become question marks.
func (c latinCanvas) FillString(f font.Face, at vg.Point, s string) {
	var b strings.Builder
	for _, r := range s {
		code, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			code = '?'
		}
		b.WriteByte(code)
	}
	c.Canvas.FillString(f, at, b.String())
}

// dates matches the dates in a PDF. They are replaced by spaces, to keep the table of offsets
// valid.
var dates = regexp.MustCompile(`/(CreationDate|ModDate) \(D:[0-9]{14}\)`)

// finish makes a file independent of the time and of installed fonts.
func finish(f Format, file []byte) []byte {
	switch f {
	case PDF:
		return dates.ReplaceAllFunc(file, func(date []byte) []byte { return bytes.Repeat([]byte{' '}, len(date)) })
	case PNG:
		return withDensity(file)
	}
	// Liberation Sans has the metrics of Arial, so either fits.
	return bytes.ReplaceAll(file, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
}

// withDensity inserts the resolution into a PNG, after the header.
func withDensity(png []byte) []byte {
	const header = 8 + 25 // signature and chunk IHDR
	const perMetre = dotsPerInch * 10000 / 254
	chunk := []byte("pHYs")
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = append(chunk, 1) // per metre
	all := binary.BigEndian.AppendUint32(bytes.Clone(png[:header]), uint32(len(chunk)-len("pHYs")))
	all = binary.BigEndian.AppendUint32(append(all, chunk...), crc32.ChecksumIEEE(chunk))
	return append(all, png[header:]...)
}
