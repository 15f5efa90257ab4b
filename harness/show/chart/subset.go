package chart

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"math/bits"
	"slices"

	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
)

var errFont = errors.New("chart: the font has no TrueType outlines")

// subset returns a font with only the glyphs of some characters and their components: a twentieth
// of Liberation Sans. Kerning and ligatures are dropped, since layout does not use them.
//
// The format follows the OpenType specification 1.9.
func subset(of *opentype.Font, chars map[rune]bool) (*opentype.Font, error) {
	var raw bytes.Buffer
	if _, err := of.WriteSourceTo(nil, &raw); err != nil {
		return nil, err
	}
	s, err := newSubsetter(tablesOf(raw.Bytes()))
	if err != nil {
		return nil, err
	}
	number := map[rune]uint16{} // glyph index in the new font
	var buffer sfnt.Buffer
	for _, r := range slices.Sorted(maps.Keys(chars)) {
		g, err := of.GlyphIndex(&buffer, r)
		if err != nil {
			return nil, err
		}
		if g != 0 && r <= 0xffff { // characters missing in the font are left to other fonts
			number[r] = s.add(uint16(g))
		}
	}
	return opentype.Parse(s.font(number))
}

// tables maps tags to tables of a font.
type tables map[string][]byte

// tablesOf returns the tables of a font, none if raw is not a font.
func tablesOf(raw []byte) tables {
	const header, entry = 12, 16
	t := tables{}
	if len(raw) < header {
		return t
	}
	for i := range int(binary.BigEndian.Uint16(raw[4:])) {
		if len(raw) < header+entry*(i+1) {
			return t
		}
		e := raw[header+entry*i:]
		at, n := uint64(binary.BigEndian.Uint32(e[8:])), uint64(binary.BigEndian.Uint32(e[12:]))
		if at+n <= uint64(len(raw)) {
			t[string(e[:4])] = raw[at : at+n]
		}
	}
	return t
}

func (t tables) bytes() []byte {
	const header, entry = 12, 16
	n := len(t)
	log := bits.Len(uint(n)) - 1
	search := 1 << log
	font := binary.BigEndian.AppendUint32(nil, 0x00010000)
	for _, v := range []int{n, search * entry, log, (n - search) * entry} {
		font = binary.BigEndian.AppendUint16(font, uint16(v))
	}
	at := header + n*entry
	var body []byte
	for _, tag := range slices.Sorted(maps.Keys(t)) {
		font = append(font, tag...)
		for _, v := range []uint32{sumOf(t[tag]), uint32(at + len(body)), uint32(len(t[tag]))} {
			font = binary.BigEndian.AppendUint32(font, v)
		}
		body = padded(append(body, t[tag]...), 4)
	}
	return append(font, body...)
}

func sumOf(table []byte) (sum uint32) {
	for word := range slices.Chunk(padded(slices.Clone(table), 4), 4) {
		sum += binary.BigEndian.Uint32(word)
	}
	return sum
}

// padded pads b to a multiple of n bytes.
func padded(b []byte, n int) []byte {
	for len(b)%n != 0 {
		b = append(b, 0)
	}
	return b
}

// subsetter copies glyphs into a new font.
type subsetter struct {
	old      tables
	outlines [][]byte          // by glyph of the old font
	metrics  int               // glyphs of the old font with an advance of their own
	kept     []uint16          // glyphs of the old font, in new order
	number   map[uint16]uint16 // old glyph to new glyph
}

// newSubsetter returns a subsetter with the missing-glyph glyph.
func newSubsetter(t tables) (*subsetter, error) {
	for _, tag := range []string{"OS/2", "cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "name", "post"} {
		if t[tag] == nil {
			return nil, errFont
		}
	}
	if len(t["head"]) < 54 || len(t["hhea"]) < 36 || len(t["maxp"]) < 6 || len(t["post"]) < 32 {
		return nil, errFont
	}
	s := &subsetter{old: t, number: map[uint16]uint16{}, metrics: int(binary.BigEndian.Uint16(t["hhea"][34:]))}
	glyphs, wide := int(binary.BigEndian.Uint16(t["maxp"][4:])), binary.BigEndian.Uint16(t["head"][50:]) != 0
	place := func(i int) uint64 { return 2 * uint64(binary.BigEndian.Uint16(t["loca"][2*i:])) }
	width := 2
	if wide {
		place = func(i int) uint64 { return uint64(binary.BigEndian.Uint32(t["loca"][4*i:])) }
		width = 4
	}
	if len(t["loca"]) < width*(glyphs+1) || s.metrics == 0 || len(t["hmtx"]) < 4*s.metrics+2*(glyphs-s.metrics) {
		return nil, errFont
	}
	for i := range glyphs {
		from, to := place(i), place(i+1)
		if from > to || to > uint64(len(t["glyf"])) {
			return nil, errFont
		}
		s.outlines = append(s.outlines, t["glyf"][from:to])
	}
	s.add(0)
	return s, nil
}

// add copies a glyph and returns its index in the new font.
func (s *subsetter) add(glyph uint16) uint16 {
	if n, ok := s.number[glyph]; ok {
		return n
	}
	n := uint16(len(s.kept))
	s.kept = append(s.kept, glyph)
	s.number[glyph] = n
	return n
}

func (s *subsetter) font(number map[rune]uint16) []byte {
	var glyf, loca, hmtx []byte
	for len(hmtx) < 4*len(s.kept) { // kept grows: components are appended
		glyph := s.kept[len(hmtx)/4]
		loca = binary.BigEndian.AppendUint32(loca, uint32(len(glyf)))
		glyf = padded(append(glyf, s.outline(glyph)...), 4)
		hmtx = append(hmtx, s.metric(glyph)...)
	}
	loca = binary.BigEndian.AppendUint32(loca, uint32(len(glyf)))
	t := tables{"glyf": glyf, "loca": loca, "hmtx": hmtx, "cmap": cmap(number)}
	for _, tag := range []string{"OS/2", "cvt ", "fpgm", "head", "hhea", "maxp", "prep"} {
		if old := s.old[tag]; old != nil {
			t[tag] = slices.Clone(old)
		}
	}
	t["name"] = renamed(s.old["name"], s.kept)
	t["post"] = slices.Clone(s.old["post"][:32])
	binary.BigEndian.PutUint32(t["post"], 0x00030000) // no glyph names
	binary.BigEndian.PutUint16(t["maxp"][4:], uint16(len(s.kept)))
	binary.BigEndian.PutUint16(t["hhea"][34:], uint16(len(s.kept)))
	binary.BigEndian.PutUint16(t["head"][50:], 1) // 4 bytes per entry in loca
	binary.BigEndian.PutUint32(t["head"][8:], 0)
	font := t.bytes()
	binary.BigEndian.PutUint32(tablesOf(font)["head"][8:], 0xb1b0afba-sumOf(font)) // as the specification requires
	return font
}

// metric returns the advance and bearing of a glyph.
func (s *subsetter) metric(glyph uint16) []byte {
	all, g := s.old["hmtx"], int(glyph)
	if g < s.metrics {
		return all[4*g : 4*g+4]
	}
	bearing := all[4*s.metrics+2*(g-s.metrics):]
	return slices.Concat(all[4*s.metrics-4:4*s.metrics-2], bearing[:2])
}

// Flags of a component.
const (
	wordArguments = 1 << 0
	oneScale      = 1 << 3
	moreParts     = 1 << 5
	twoScales     = 1 << 6
	fourScales    = 1 << 7
)

// outline copies the outline of a glyph and its components.
func (s *subsetter) outline(glyph uint16) []byte {
	old := s.outlines[glyph]
	const header = 10
	if len(old) < header || int16(binary.BigEndian.Uint16(old)) >= 0 {
		return old
	}
	out := slices.Clone(old)
	for at := header; at+4 <= len(out); {
		flags, part := binary.BigEndian.Uint16(out[at:]), binary.BigEndian.Uint16(out[at+2:])
		if int(part) < len(s.outlines) {
			binary.BigEndian.PutUint16(out[at+2:], s.add(part))
		}
		at += 6
		for _, has := range []struct {
			flag uint16
			more int
		}{{wordArguments, 2}, {oneScale, 2}, {twoScales, 4}, {fourScales, 8}} {
			if flags&has.flag != 0 {
				at += has.more
			}
		}
		if flags&moreParts == 0 {
			break
		}
	}
	return out
}

// cmap returns a character map in format 4 with one segment per character.
func cmap(number map[rune]uint16) []byte {
	chars := slices.Sorted(maps.Keys(number))
	n := len(chars) + 1 // the last segment is the required terminator
	log := bits.Len(uint(n)) - 1
	search := 1 << log
	var ends, starts, deltas, offsets []byte
	for _, r := range chars {
		ends, starts = binary.BigEndian.AppendUint16(ends, uint16(r)), binary.BigEndian.AppendUint16(starts, uint16(r))
		deltas = binary.BigEndian.AppendUint16(deltas, number[r]-uint16(r))
	}
	ends, starts = append(ends, 0xff, 0xff), append(starts, 0xff, 0xff)
	deltas, offsets = append(deltas, 0, 1), make([]byte, 2*n)
	var sub []byte
	for _, v := range []int{4, 16 + 8*n, 0, 2 * n, 2 * search, log, 2 * (n - search)} {
		sub = binary.BigEndian.AppendUint16(sub, uint16(v))
	}
	sub = slices.Concat(sub, ends, []byte{0, 0}, starts, deltas, offsets)
	// One table for Unicode's first plane on Windows, which all readers accept.
	return append([]byte{0, 0, 0, 1, 0, 3, 0, 1, 0, 0, 0, 12}, sub...)
}

// IDs of the names kept: the font's own, its licence and its copyright.
var namesKept = []uint16{0, 1, 2, 4, postScriptName, 13, 14}

const postScriptName = 6

// renamed returns the name table, in English for Windows only. The PostScript name gets a tag of
// six letters derived from the glyphs, which marks it as a subset in PDF.
func renamed(old []byte, glyphs []uint16) []byte {
	const header, entry = 6, 12
	if len(old) < header {
		return old
	}
	var records, texts []byte
	n := 0
	for i := range int(binary.BigEndian.Uint16(old[2:])) {
		if len(old) < header+entry*(i+1) {
			break
		}
		e := old[header+entry*i:][:entry]
		id := binary.BigEndian.Uint16(e[6:])
		at := int(binary.BigEndian.Uint16(old[4:])) + int(binary.BigEndian.Uint16(e[10:]))
		end := at + int(binary.BigEndian.Uint16(e[8:]))
		if !bytes.Equal(e[:6], []byte{0, 3, 0, 1, 4, 9}) || !slices.Contains(namesKept, id) || end > len(old) {
			continue
		}
		text := old[at:end]
		if id == postScriptName {
			text = append(lettersOf(glyphs), text...)
		}
		for _, v := range []int{3, 1, 0x409, int(id), len(text), len(texts)} {
			records = binary.BigEndian.AppendUint16(records, uint16(v))
		}
		texts = append(texts, text...)
		n++
	}
	var out []byte
	for _, v := range []int{0, n, header + len(records)} {
		out = binary.BigEndian.AppendUint16(out, uint16(v))
	}
	return slices.Concat(out, records, texts)
}

// lettersOf returns the subset tag and a plus sign in UTF-16.
func lettersOf(glyphs []uint16) (text []byte) {
	h := fnv.New32a()
	for _, g := range glyphs {
		_, _ = h.Write([]byte{byte(g >> 8), byte(g)}) // never fails
	}
	sum := h.Sum32()
	for range 6 {
		text = append(text, 0, 'A'+byte(sum%26))
		sum /= 26
	}
	return append(text, 0, '+')
}
