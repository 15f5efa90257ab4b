package formats

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vramyard/vramyard/internal/budget"
)

var (
	errWireCut    = errors.New("protobuf data is truncated")
	errWireVarint = errors.New("a number of more than 64 bits")
	errWireType   = errors.New("field with an unknown wire type")
	errWireField  = errors.New("field 0")
)

// message reads the fields of a protobuf message. A nested message refers to the same bytes, so
// reading copies nothing.
type message struct {
	data  []byte
	base  int64 // offset of data in the file
	at    int   // position of the next field
	from  int   // position of the current field
	err   error
	errAt int64 // offset of err in the file

	field  protowire.Number
	wire   protowire.Type
	number uint64 // value of a varint or fixed field
	bytes  []byte // value of a length-delimited field
}

// next reads a field. It returns false at the end and on an error, which is in err.
func (m *message) next() bool {
	if m.err != nil || m.at >= len(m.data) {
		return false
	}
	m.from = m.at
	var n, size int
	if m.field, m.wire, n, m.err = wireTag(m.data[m.at:]); m.err == nil {
		m.at += n
		switch rest := m.data[m.at:]; m.wire {
		case protowire.VarintType:
			m.number, size = protowire.ConsumeVarint(rest)
		case protowire.Fixed64Type:
			m.number, size = protowire.ConsumeFixed64(rest)
		case protowire.Fixed32Type:
			var short uint32
			short, size = protowire.ConsumeFixed32(rest)
			m.number = uint64(short)
		case protowire.BytesType:
			m.bytes, size = protowire.ConsumeBytes(rest)
		}
		m.err = wireError(size)
	}
	m.at += size
	m.errAt = m.base + int64(m.from)
	return m.err == nil
}

// wireTag reads the tag of a field and returns its size. Groups are an error: no supported format
// has them.
func wireTag(b []byte) (protowire.Number, protowire.Type, int, error) {
	tag, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, 0, 0, wireError(n)
	}
	field, wire := protowire.DecodeTag(tag)
	if !field.IsValid() {
		return 0, 0, 0, errWireField
	}
	switch wire {
	case protowire.VarintType, protowire.Fixed64Type, protowire.Fixed32Type, protowire.BytesType:
		return field, wire, n, nil
	}
	return 0, 0, 0, errWireType
}

// wireError converts a negative size of package protowire to an error.
func wireError(size int) error {
	switch {
	case size >= 0:
		return nil
	case errors.Is(protowire.ParseError(size), io.ErrUnexpectedEOF):
		return errWireCut
	}
	return errWireVarint
}

func (m *message) sub() *message {
	inner := &message{base: m.base + int64(m.at-len(m.bytes)), data: m.bytes}
	if m.wire != protowire.BytesType {
		inner.err, inner.errAt = fmt.Errorf("field %d is no message", m.field), m.base+int64(m.from)
	}
	return inner
}

func (m *message) text() (string, error) {
	switch {
	case m.wire != protowire.BytesType:
		return "", nil
	case len(m.bytes) > maxValue:
		return "", errValue
	}
	return string(m.bytes), nil
}

// each calls visit for every field until the first error, which it returns with the position in the
// file.
func (m *message) each(in *Input, visit func() error) error {
	for m.next() {
		if err := visit(); err != nil {
			return in.located(m.base+int64(m.from), err)
		}
	}
	if m.err != nil {
		return in.at(m.errAt, m.err)
	}
	return nil
}

// fields calls visit for every field of a file that is a single message, until the first error. It
// holds one field in memory.
func (in *Input) fields(visit func(*message) error) error {
	r := bufio.NewReader(in)
	m := &message{}
	defer func() { budget.Release(in.budget, m.data) }()
	for {
		size, err := nextField(r)
		if size == 0 && err == nil {
			return nil
		}
		*m = message{base: m.base + int64(len(m.data)), data: m.data[:0]}
		if err == nil {
			err = m.fill(in, r, size)
		}
		if err == nil && m.next() {
			err = visit(m)
		}
		if err = cmp.Or(err, m.err); err != nil {
			return in.located(m.base, err)
		}
	}
}

// nextField returns the size of the next field including its tag, or 0 at the end of the file.
func nextField(r *bufio.Reader) (uint64, error) {
	head, err := r.Peek(2 * binary.MaxVarintLen64)
	if err == io.EOF && len(head) == 0 {
		return 0, nil
	} else if err != nil && err != io.EOF {
		return 0, err
	}
	field, wire, n, err := wireTag(head)
	if err != nil {
		return 0, err
	}
	if wire != protowire.BytesType {
		size := protowire.ConsumeFieldValue(field, wire, head[n:])
		return uint64(n + size), wireError(size)
	}
	length, k := protowire.ConsumeVarint(head[n:])
	if k < 0 {
		return 0, wireError(k)
	}
	return uint64(n+k) + min(length, math.MaxInt64), nil
}

// fill reads a field of n bytes. The buffer grows as the bytes arrive.
func (m *message) fill(in *Input, r io.Reader, n uint64) (err error) {
	const atOnce = 1 << 16
	for done := 0; uint64(done) < n; {
		part := int(min(n-uint64(done), atOnce))
		if m.data, err = budget.Grow(in.budget, m.data, part); err != nil {
			return err
		}
		k, err := io.ReadFull(r, m.data[done:done+part])
		done += k
		m.data = m.data[:done]
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return errWireCut
		case err != nil:
			return err
		}
	}
	return nil
}
