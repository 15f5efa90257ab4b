package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// ref is the location of an array in the arena.
type ref struct {
	Type   string `json:"t"` // u8, u16, u32, i16, f32 or f64
	Offset int    `json:"o"` // bytes
	Count  int    `json:"n"` // elements
}

// arena is the binary data of a page: little-endian arrays, each aligned to 8 bytes.
type arena struct {
	data []byte
	fast bool // the page stays on this machine: compress quickly
}

func (a *arena) begin(kind string, count int) *ref {
	for len(a.data)%8 != 0 {
		a.data = append(a.data, 0)
	}
	return &ref{kind, len(a.data), count}
}

func put[T uint8 | uint16 | int16 | uint32 | float32 | float64](a *arena, kind string, v []T) *ref {
	r := a.begin(kind, len(v))
	a.data, _ = binary.Append(a.data, binary.LittleEndian, v) // cannot fail for numbers of a fixed size
	return r
}

func (a *arena) u8(v []uint8) *ref    { return put(a, "u8", v) }
func (a *arena) u16(v []uint16) *ref  { return put(a, "u16", v) }
func (a *arena) i16(v []int16) *ref   { return put(a, "i16", v) }
func (a *arena) u32(v []uint32) *ref  { return put(a, "u32", v) }
func (a *arena) f64(v []float64) *ref { return put(a, "f64", v) }

// f32 adds values for which single precision suffices.
func (a *arena) f32(v []float64) *ref {
	single := make([]float32, len(v))
	for i, x := range v {
		single[i] = float32(x)
	}
	return put(a, "f32", single)
}

// text returns the data gzipped and in base64. It is deterministic.
func (a *arena) text() (string, error) {
	level := gzip.DefaultCompression
	if a.fast {
		level = gzip.BestSpeed
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, level)
	if err != nil {
		return "", err
	}
	_, err = z.Write(a.data)
	err = errors.Join(err, z.Close())
	return base64.StdEncoding.EncodeToString(packed.Bytes()), err
}
