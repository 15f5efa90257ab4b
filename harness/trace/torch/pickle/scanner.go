package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// MaxText is the maximum length of a string in bytes, about 1,000 times a long path.
const MaxText = 16 << 20

// window is the size of the read buffer in bytes. Longer strings are assembled in Scanner.long.
const window = 16 << 10

// Error is a malformed pickle and the position of the fault.
type Error struct {
	At   int64  // byte, counted from 0
	Text string // the value found and the value expected
}

func (e *Error) Error() string { return fmt.Sprintf("at byte %d: %s", e.At, e.Text) }

// Scanner splits a pickle into operations.
type Scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int   // buf[pos:end] is not read yet
	base     int64 // offset of buf[0]
	off      int64 // offset of the current operation
	proto    byte  // 0 before PROTO
	frameEnd int64 // the end of the last frame

	num   uint64
	float float64
	text  []byte
	long  []byte // buffer for texts longer than window
}

// NewScanner returns a scanner of r.
func NewScanner(r io.Reader) *Scanner { return &Scanner{r: r, buf: make([]byte, window)} }

// Offset returns the byte offset of the operation that Next returned last.
func (s *Scanner) Offset() int64 { return s.off }

// Int returns the operand of an Int.
func (s *Scanner) Int() int64 { return int64(s.num) }

// Uint returns the operand of a Uint.
func (s *Scanner) Uint() uint64 { return s.num }

// Index returns the memo index of a Get or a Put.
func (s *Scanner) Index() uint32 { return uint32(s.num) }

// Float returns the operand of a Float.
func (s *Scanner) Float() float64 { return s.float }

// Text returns the operand of a Text. It is valid until the next call of Next.
func (s *Scanner) Text() []byte { return s.text }

// Next returns the next operation. The last one is Stop; bytes after it are an error.
func (s *Scanner) Next() (Op, error) {
	for {
		s.off = s.base + int64(s.pos)
		if s.pos == s.end {
			if err := s.fill(1); err != nil {
				return 0, s.truncated(err, "STOP")
			}
		}
		b := s.buf[s.pos]
		c := &opcodes[b]
		s.pos++
		switch c.arg { // fast paths for the most frequent opcodes
		case nothing:
			if c.op > Stop && s.proto != 0 {
				return c.op, nil
			}
		case byte1:
			if s.pos < s.end && s.proto != 0 {
				s.num = uint64(s.buf[s.pos])
				s.pos++
				return c.op, nil
			}
		case byte4:
			if s.end-s.pos >= 4 && s.proto != 0 {
				s.num = uint64(binary.LittleEndian.Uint32(s.buf[s.pos:]))
				s.pos += 4
				return c.op, nil
			}
		}
		if s.proto == 0 && c.arg != proto {
			return 0, s.errorf("the file begins with 0x%02x, want a pickle of protocol 2 to 5", b)
		}
		if c.op == refused {
			return 0, s.refuse(b)
		}
		op, err := s.operand(c)
		if err != nil || op != header {
			return op, err
		}
	}
}

// refuse returns the error for an opcode that is not accepted.
func (s *Scanner) refuse(b byte) error {
	const want = "want only lists, dictionaries, strings and numbers"
	switch c := &opcodes[b]; {
	case c.name == "":
		return s.errorf("0x%02x is no opcode, want one of a pickle", b)
	case c.arg == code:
		return s.errorf("opcode %s could run code, %s", c.name, want)
	default:
		return s.errorf("opcode %s, %s", c.name, want)
	}
}

func (s *Scanner) operand(c *opcode) (Op, error) {
	switch c.arg {
	case nothing:
		if c.op == Stop {
			return Stop, s.stop()
		}
		return c.op, nil
	case byte1:
		return c.op, s.number(c, 1)
	case byte2:
		return c.op, s.number(c, 2)
	case byte4:
		return c.op, s.number(c, 4)
	case signed4:
		err := s.number(c, 4)
		s.num = uint64(int64(int32(uint32(s.num))))
		return c.op, err
	case float8:
		err := s.number(c, 8)
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], s.num)
		s.float = math.Float64frombits(binary.BigEndian.Uint64(b[:]))
		return c.op, err
	case long1, long4:
		return s.integer(c)
	case text1:
		return c.op, s.string(c, 1)
	case text4:
		return c.op, s.string(c, 4)
	case text8:
		return c.op, s.string(c, 8)
	case proto:
		return c.op, s.protocol(c)
	default:
		return c.op, s.frame(c)
	}
}

// number reads a little-endian number of n bytes into s.num.
func (s *Scanner) number(c *opcode, n int) error {
	if s.end-s.pos < n {
		if err := s.fill(n); err != nil {
			return s.truncated(err, "the operand of "+c.name)
		}
	}
	b := s.buf[s.pos:]
	s.pos += n
	switch n {
	case 1:
		s.num = uint64(b[0])
	case 2:
		s.num = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		s.num = uint64(binary.LittleEndian.Uint32(b))
	default:
		s.num = binary.LittleEndian.Uint64(b)
	}
	return nil
}

// maxLong is the maximum length of an integer in bytes. Snapshots need at most 9.
const maxLong = 255

// integer reads a length and a little-endian integer in two's complement.
func (s *Scanner) integer(c *opcode) (Op, error) {
	size := 1
	if c.arg == long4 {
		size = 4
	}
	if err := s.number(c, size); err != nil {
		return 0, err
	}
	if s.num > maxLong {
		return 0, s.errorf("%s of %d bytes, want at most %d", c.name, s.num, maxLong)
	}
	n := int(s.num)
	if err := s.fill(n); err != nil {
		return 0, s.truncated(err, fmt.Sprintf("an integer of %d bytes", n))
	}
	b := s.buf[s.pos : s.pos+n]
	s.pos += n
	sign := byte(0)
	if n > 0 && b[n-1]&0x80 != 0 {
		sign = 0xff
	}
	for n > 8 && b[n-1] == sign { // drop bytes that only extend the sign
		n--
	}
	s.num = 0
	if sign != 0 {
		s.num = math.MaxUint64
	}
	for i := min(n, 8) - 1; i >= 0; i-- {
		s.num = s.num<<8 | uint64(b[i])
	}
	negative := s.num>>63 != 0
	switch {
	case n > 8, sign != 0 && !negative:
		return Wide, nil
	case sign == 0 && negative:
		return Uint, nil
	}
	return Int, nil
}

// string reads a length field of size bytes and the text.
func (s *Scanner) string(c *opcode, size int) error {
	if err := s.number(c, size); err != nil {
		return err
	}
	if s.num > MaxText {
		return s.errorf("%s of %d bytes, want at most %d", c.name, s.num, MaxText)
	}
	n := int(s.num)
	if n <= window {
		if err := s.fill(n); err != nil {
			return s.truncated(err, fmt.Sprintf("a string of %d bytes", n))
		}
		s.text = s.buf[s.pos : s.pos+n]
		s.pos += n
		return nil
	}
	s.long = s.long[:0]
	for len(s.long) < n {
		if err := s.fill(1); err != nil {
			return s.truncated(err, fmt.Sprintf("a string of %d bytes", n))
		}
		part := min(n-len(s.long), s.end-s.pos)
		s.long = append(s.long, s.buf[s.pos:s.pos+part]...)
		s.pos += part
	}
	s.text = s.long
	return nil
}

// protocol reads PROTO, which must be the first opcode.
func (s *Scanner) protocol(c *opcode) error {
	if err := s.number(c, 1); err != nil {
		return err
	}
	switch {
	case s.proto != 0:
		return s.errorf("a second PROTO, want one")
	case s.num < 2 || s.num > 5:
		return s.errorf("protocol %d, want 2 to 5", s.num)
	}
	s.proto = byte(s.num)
	return nil
}

// frame reads the length of a frame. The scanner does not need frames, but a length that
// contradicts the file is an error: no pickler writes one.
func (s *Scanner) frame(c *opcode) error {
	if err := s.number(c, 8); err != nil {
		return err
	}
	at := s.base + int64(s.pos)
	if s.off < s.frameEnd {
		return s.errorf("a frame inside the frame that ends at byte %d, want it after that", s.frameEnd)
	}
	if s.num > math.MaxInt64-uint64(at) {
		return s.errorf("FRAME of %d bytes, want fewer than a file has", s.num)
	}
	s.frameEnd = at + int64(s.num)
	return nil
}

// stop checks that the last frame and the file end here.
func (s *Scanner) stop() error {
	at := s.base + int64(s.pos)
	if s.frameEnd > at {
		return s.errorf("STOP inside a frame that claims to end at byte %d, want it at byte %d", s.frameEnd, at)
	}
	switch err := s.fill(1); {
	case err == nil:
		s.off = at
		return s.errorf("bytes after STOP, want the end of the file")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// fill fills the buffer until it holds n unread bytes. Precondition: n <= window.
func (s *Scanner) fill(n int) error {
	if s.end-s.pos >= n {
		return nil
	}
	s.base += int64(s.pos)
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	for s.end < n {
		k, err := s.r.Read(s.buf[s.end:])
		s.end += k
		if err != nil && s.end < n {
			return err
		}
	}
	return nil
}

// truncated reports an end of file as a missing part, and returns other errors unchanged.
func (s *Scanner) truncated(err error, want string) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	return &Error{At: s.base + int64(s.end), Text: "the file ends, want " + want}
}

func (s *Scanner) errorf(format string, a ...any) error {
	return &Error{At: s.off, Text: fmt.Sprintf(format, a...)}
}
