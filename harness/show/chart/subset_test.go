package chart

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
)

// whole returns the font of figures.
func whole() *opentype.Font {
	return plot.DefaultTextHandler.Cache().Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, 8).Face
}

// glyph returns the outline and the width of a character in a font.
func glyph(t *testing.T, f *opentype.Font, r rune) (sfnt.Segments, fixed.Int26_6) {
	t.Helper()
	var b sfnt.Buffer
	g, err := f.GlyphIndex(&b, r)
	require.NoError(t, err)
	outline, err := f.LoadGlyph(&b, g, fixed.I(1000), nil)
	require.NoError(t, err)
	width, err := f.GlyphAdvance(&b, g, fixed.I(1000), 0)
	require.NoError(t, err)
	return append(sfnt.Segments(nil), outline...), width
}

// TestSubsetFontsDrawTheSame compares every character that is taken, composed ones too, and some
// that are not.
func TestSubsetFontsDrawTheSame(t *testing.T) {
	for name, text := range map[string]string{
		"plain": "0.25 bfc:growth (GiB)", "composed": "éÅůñ×…µ", "all of latin": latinLetters(), "nothing": "",
		"not there": "中\U0001f600\u202e",
	} {
		chars := map[rune]bool{}
		for _, r := range text {
			chars[r] = true
		}
		part, err := subset(whole(), chars)
		require.NoError(t, err, name)
		for _, r := range text + "Zß€" {
			want, width := glyph(t, whole(), r)
			if !chars[r] {
				want, width = glyph(t, whole(), 0)
			}
			got, gotWidth := glyph(t, part, r)
			assert.Equal(t, want, got, "%s: %q", name, r)
			assert.Equal(t, width, gotWidth, "%s: %q", name, r)
		}
	}
}

// latinLetters returns the characters of an encoding of 256 characters.
func latinLetters() string {
	var b bytes.Buffer
	for r := rune(' '); r < 0x180; r++ {
		b.WriteRune(r)
	}
	return b.String()
}

// TestSubsetFontsHaveTheirOwnNames checks that each subset has its own PostScript name and the
// family name.
func TestSubsetFontsHaveTheirOwnNames(t *testing.T) {
	seen := map[string]bool{}
	for _, chars := range []map[rune]bool{{'a': true}, {'b': true}, {'a': true, 'b': true}} {
		part, err := subset(whole(), chars)
		require.NoError(t, err)
		name, err := part.Name(nil, sfnt.NameIDPostScript)
		require.NoError(t, err)
		assert.Regexp(t, `^[A-Z]{6}\+LiberationSans$`, name)
		assert.False(t, seen[name], name)
		seen[name] = true
		family, err := part.Name(nil, sfnt.NameIDFamily)
		require.NoError(t, err)
		assert.Equal(t, "Liberation Sans", family)
		var raw bytes.Buffer
		_, err = part.WriteSourceTo(nil, &raw)
		require.NoError(t, err)
		assert.Equal(t, uint32(0xb1b0afba), sumOf(raw.Bytes()), "the checksum of a font")
		assert.Less(t, raw.Len(), 12_000)
	}
}

// TestOtherFontsAreRefused passes data that is not a font with TrueType outlines.
func TestOtherFontsAreRefused(t *testing.T) {
	for _, raw := range []string{"", "short", "OTTO\x00\xff\x00\x00\x00\x00\x00\x00"} {
		_, err := newSubsetter(tablesOf([]byte(raw)))
		assert.ErrorIs(t, err, errFont)
	}
}
