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
	PNG Format = "png" // 300 dots to the inch, and it says so
)

// dotsPerInch is what journals ask for.
const dotsPerInch = 300

// FormatOf returns the format that the ending of a file's name asks for.
func FormatOf(path string) (Format, error) {
	ext := strings.ToLower(filepath.Ext(path))
	switch f := Format(strings.TrimPrefix(ext, ".")); f {
	case SVG, PDF, PNG:
		return f, nil
	}
	return "", fmt.Errorf("%q: want a name that ends in .svg, .pdf or .png", path)
}

// Page is what a chart is drawn on. Lengths are points.
type Page struct {
	Width  vg.Length // of the whole
	Height vg.Length // of the whole; 0 is what suits the width
	Font   vg.Length // size of the text
	Linked bool      // an SVG names its font instead of holding what it uses of it, 15 KiB smaller
}

// Widths of columns that most journals and proceedings have.
const (
	OneColumn  = 8.5 * vg.Centimeter
	TwoColumns = 17.8 * vg.Centimeter
)

// errSize is what is wrong with most sizes.
var errSize = errors.New(
	`want "one" or "two" columns, or a width in cm such as "12", or with the height, "8.5x6", each from 2 to 100`)

// ParseSize reads the size of a page: the width of one or two columns, or a width or width and
// height in centimetres. The height is 0 if it is left to the chart.
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

// Write draws the chart and writes it. It fails for a page that is too small. A chart is written
// once.
func (c *Chart) Write(w io.Writer, f Format, p Page) error {
	l := c.layout(p.Width, p.Font)
	natural := l.natural(p.Width)
	if p.Height == 0 {
		p.Height = natural
	}
	var drawn recorder.Canvas
	if !l.draw(draw.NewCanvas(&drawn, p.Width, p.Height)) {
		if p.Height >= natural { // more of it would not help
			return fmt.Errorf("no room for the figure on a width of %.1f cm with text of %g points: want more of the one or "+
				"less of the other",
				p.Width/vg.Centimeter, float64(p.Font))
		}
		return fmt.Errorf("no room for the figure on %.1f x %.1f cm; at this width and font it takes about %.1f cm of height",
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

// paint does on a canvas what was recorded, in which all text is of one typeface. Parts of fonts
// hold the characters that are there.
func paint(on vg.Canvas, actions []recorder.Action, part bool) error {
	chars := map[rune]bool{'?': true} // which stands for those that a PDF lacks
	for _, a := range actions {
		if text, ok := a.(*recorder.FillString); ok {
			for _, r := range text.String {
				chars[r] = true
			}
		}
	}
	var small *opentype.Font // the part
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

// sizedWriter is a canvas of the library that can be written.
type sizedWriter interface {
	vg.CanvasSizer
	io.WriterTo
}

func canvasOf(f Format, p Page) sizedWriter {
	switch f {
	case PDF:
		return latin{vgpdf.New(p.Width, p.Height)}
	case PNG:
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(p.Width, p.Height), vgimg.UseDPI(dotsPerInch))}
	}
	return vgsvg.NewWith(vgsvg.UseWH(p.Width, p.Height), vgsvg.EmbedFonts(!p.Linked))
}

// latin is a PDF whose text is in the encoding that the library declares its fonts to have.
type latin struct{ *vgpdf.Canvas }

// FillString implements [vg.Canvas]. What the encoding lacks is a question mark.
func (c latin) FillString(f font.Face, at vg.Point, s string) {
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

// dates are those of a PDF. Spaces of the same length keep its table of offsets right.
var dates = regexp.MustCompile(`/(CreationDate|ModDate) \(D:[0-9]{14}\)`)

// finish makes a file independent of the time, and of what is installed.
func finish(f Format, file []byte) []byte {
	switch f {
	case PDF:
		return dates.ReplaceAllFunc(file, func(date []byte) []byte { return bytes.Repeat([]byte{' '}, len(date)) })
	case PNG:
		return withDensity(file)
	}
	// Liberation Sans has the widths of Arial, so that either fits.
	return bytes.ReplaceAll(file, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
}

// withDensity puts the chunk into a PNG that says how large a dot is, behind the header.
func withDensity(png []byte) []byte {
	const header = 8 + 25 // signature and the chunk IHDR
	const perMetre = dotsPerInch * 10000 / 254
	chunk := []byte("pHYs")
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = append(chunk, 1) // the unit is the metre
	all := binary.BigEndian.AppendUint32(bytes.Clone(png[:header]), uint32(len(chunk)-len("pHYs")))
	all = binary.BigEndian.AppendUint32(append(all, chunk...), crc32.ChecksumIEEE(chunk))
	return append(all, png[header:]...)
}
