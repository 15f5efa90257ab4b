package formats

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/vramyard/vramyard/internal/budget"
)

// Wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var (
	errWireCut    = errors.New("protobuf data is truncated")
	errWireVarint = errors.New("a number of more than 64 bits")
	errWireType   = errors.New("field with an unknown wire type")
	errWireField  = errors.New("field 0")
)

// message reads the fields of one message of protocol buffers. Lengths are compared with what is
// there before anything is done with them, and a message inside another is a part of the same
// bytes, so reading copies nothing.
type message struct {
	data []byte
	base int64 // where data begins in the file
	at   int   // of the field to come
	from int   // of the present field
	err  error
	errs int64 // where err is

	field  int
	wire   int
	number uint64 // of a varint or a fixed number
	bytes  []byte // of a length-delimited field
}

// next reads a field and reports whether there was one. At the end, or where the data is wrong, it
// returns false; see err.
func (m *message) next() bool {
	if m.err != nil || m.at >= len(m.data) {
		return false
	}
	m.from = m.at
	key := m.varint()
	m.field, m.wire = int(key>>3), int(key&7)
	switch {
	case m.err != nil:
	case m.field == 0 || key>>3 > 1<<29:
		m.fail(errWireField)
	case m.wire == wireVarint:
		m.number = m.varint()
	case m.wire == wireFixed64:
		if b := m.take(8); b != nil {
			m.number = binary.LittleEndian.Uint64(b)
		}
	case m.wire == wireFixed32:
		if b := m.take(4); b != nil {
			m.number = uint64(binary.LittleEndian.Uint32(b))
		}
	case m.wire == wireBytes:
		if n := m.varint(); m.err == nil {
			m.bytes = m.take(n)
		}
	default:
		m.fail(errWireType)
	}
	return m.err == nil
}

// varint reads a number.
func (m *message) varint() uint64 {
	n, size := binary.Uvarint(m.data[m.at:])
	switch {
	case size == 0:
		m.fail(errWireCut)
	case size < 0:
		m.fail(errWireVarint)
	default:
		m.at += size
	}
	return n
}

// take returns the next n bytes.
func (m *message) take(n uint64) []byte {
	if n > uint64(len(m.data)-m.at) {
		m.fail(errWireCut)
		return nil
	}
	b := m.data[m.at : m.at+int(n)]
	m.at += int(n)
	return b
}

// fail notes an error in the present field.
func (m *message) fail(err error) { m.err, m.errs = err, m.base+int64(m.from) }

// sub returns the message in the present field.
func (m *message) sub() *message {
	inner := &message{base: m.base + int64(m.at-len(m.bytes)), data: m.bytes}
	if m.wire != wireBytes {
		inner.err, inner.errs = fmt.Errorf("field %d is no message", m.field), m.base+int64(m.from)
	}
	return inner
}

// text returns the present field as text.
func (m *message) text() (string, error) {
	switch {
	case m.wire != wireBytes:
		return "", nil
	case len(m.bytes) > maxValue:
		return "", errValue
	}
	return string(m.bytes), nil
}

// each calls visit for every field up to the end or the first error, which it returns with its place
// in the file.
func (m *message) each(in *Input, visit func() error) error {
	for m.next() {
		if err := visit(); err != nil {
			return in.located(m.base+int64(m.from), err)
		}
	}
	if m.err != nil {
		return in.at(m.errs, m.err)
	}
	return nil
}

// fields calls visit for every field of a file that is one message, up to the end or the first error. Only one
// field at a time is in memory.
func (in *Input) fields(visit func(*message) error) error {
	w := &wire{in: in, r: bufio.NewReader(in)}
	defer func() { budget.Release(in.budget, w.buf) }()
	for {
		w.start = w.at
		m, err := w.next()
		if err == nil && m == nil {
			return nil
		}
		if err == nil {
			err = visit(m)
		}
		if err != nil {
			return in.located(w.start, err)
		}
	}
}

// wire reads the outermost fields of a file.
type wire struct {
	in    *Input
	r     *bufio.Reader
	at    int64  // bytes read
	start int64  // where the present field begins
	buf   []byte // the bytes of the present field; used again
	err   error  // of the stream, as opposed to its content
}

// ReadByte implements [io.ByteReader].
func (w *wire) ReadByte() (byte, error) {
	b, err := w.r.ReadByte()
	if err == nil {
		w.at++
	} else if err != io.EOF {
		w.err = err
	}
	return b, err
}

// next reads a field; nil is the end of the file.
func (w *wire) next() (*message, error) {
	key, err := w.varint()
	if w.at == w.start && w.err == nil {
		return nil, nil
	}
	m := &message{field: int(key >> 3), wire: int(key & 7), from: int(w.start)}
	switch {
	case err != nil:
	case m.field == 0 || key>>3 > 1<<29:
		err = errWireField
	case m.wire == wireVarint:
		m.number, err = w.varint()
	case m.wire == wireFixed64:
		if err = w.take(8); err == nil {
			m.number = binary.LittleEndian.Uint64(w.buf)
		}
	case m.wire == wireFixed32:
		if err = w.take(4); err == nil {
			m.number = uint64(binary.LittleEndian.Uint32(w.buf))
		}
	case m.wire == wireBytes:
		var n uint64
		if n, err = w.varint(); err == nil {
			err = w.take(n)
			m.bytes, m.at = w.buf, int(w.at)
		}
	default:
		err = errWireType
	}
	return m, err
}

// varint reads a number.
func (w *wire) varint() (uint64, error) {
	n, err := binary.ReadUvarint(w)
	switch {
	case err == nil:
		return n, nil
	case w.err != nil:
		return 0, w.err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return 0, errWireCut
	}
	return 0, errWireVarint
}

// take reads n bytes into the buffer, which grows as they come.
func (w *wire) take(n uint64) (err error) {
	const atOnce = 1 << 16
	w.buf = w.buf[:0]
	for done := 0; uint64(done) < n; {
		part := int(min(n-uint64(done), atOnce))
		if w.buf, err = budget.Grow(w.in.budget, w.buf, part); err != nil {
			return err
		}
		k, err := io.ReadFull(w.r, w.buf[done:done+part])
		done, w.at = done+k, w.at+int64(k)
		w.buf = w.buf[:done]
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return errWireCut
		case err != nil:
			return err
		}
	}
	return nil
}
