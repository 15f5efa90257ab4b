package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math"
)

// ref is where an array lies in the data of a page.
type ref struct {
	Type   string `json:"t"` // u8, u16, u32, i16, f32 or f64
	Offset int    `json:"o"` // bytes
	Count  int    `json:"n"` // elements
}

// arena is the data of a page: arrays one after the other, each at a multiple of 8 bytes, little endian.
type arena struct{ data []byte }

// begin begins an array.
func (a *arena) begin(kind string, count int) *ref {
	for len(a.data)%8 != 0 {
		a.data = append(a.data, 0)
	}
	return &ref{kind, len(a.data), count}
}

func (a *arena) u8(v []uint8) *ref {
	r := a.begin("u8", len(v))
	a.data = append(a.data, v...)
	return r
}

func (a *arena) u16(v []uint16) *ref {
	r := a.begin("u16", len(v))
	for _, x := range v {
		a.data = binary.LittleEndian.AppendUint16(a.data, x)
	}
	return r
}

func (a *arena) i16(v []int16) *ref {
	r := a.begin("i16", len(v))
	for _, x := range v {
		a.data = binary.LittleEndian.AppendUint16(a.data, uint16(x))
	}
	return r
}

func (a *arena) u32(v []uint32) *ref {
	r := a.begin("u32", len(v))
	for _, x := range v {
		a.data = binary.LittleEndian.AppendUint32(a.data, x)
	}
	return r
}

func (a *arena) f32(v []float64) *ref {
	r := a.begin("f32", len(v))
	for _, x := range v {
		a.data = binary.LittleEndian.AppendUint32(a.data, math.Float32bits(float32(x)))
	}
	return r
}

func (a *arena) f64(v []float64) *ref {
	r := a.begin("f64", len(v))
	for _, x := range v {
		a.data = binary.LittleEndian.AppendUint64(a.data, math.Float64bits(x))
	}
	return r
}

// text returns the data compressed and in base64. The same data give the same text.
func (a *arena) text() (string, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.Copy(z, bytes.NewReader(a.data)); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}
