package formats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
func (m *message) text() string {
	if m.wire != wireBytes {
		return ""
	}
	return string(m.bytes)
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

// maxMessage bounds a file of protocol buffers, which is held as a whole: what names an event may
// stand behind it.
const maxMessage = 1 << 30

// message reads the whole file as one message.
func (in *Input) message() (*message, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxMessage+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxMessage {
		return nil, fmt.Errorf("more than %d bytes", maxMessage)
	}
	return &message{data: data}, nil
}
