package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
)

// maxValue is the maximum length in bytes of a JSON value or a protobuf text. Long lists are read
// value by value, so it bounds the memory of a reader.
const maxValue = 16 << 20

// maxNesting is the maximum nesting of a skipped value.
const maxNesting = 1000

// document reads a JSON file value by value.
type document struct {
	in    *Input
	dec   *json.Decoder
	base  int64 // offset of the JSON after a byte order mark
	start int64 // offset of the current value
	quota quota
}

// quota is a reader that fails when a single value is too long.
type quota struct {
	r    io.Reader
	left int
	err  error // error of r itself, not of its content
}

// errValue is the error for a value that is too long.
var errValue = fmt.Errorf("a value is longer than %d bytes", maxValue)

func (q *quota) Read(b []byte) (int, error) {
	if q.left <= 0 {
		return 0, errValue
	}
	n, err := q.r.Read(b[:min(len(b), q.left)])
	q.left -= n
	if err != nil && err != io.EOF {
		q.err = err
	}
	return n, err
}

// newDocument starts to read after an optional byte order mark.
func newDocument(in *Input) (*document, error) {
	d := &document{in: in, quota: quota{r: in, left: maxValue}}
	if head, err := in.plain.Peek(len(utf8BOM)); err == nil && bytes.Equal(head, utf8BOM) {
		d.base = int64(len(utf8BOM))
		if _, err := io.CopyN(io.Discard, in, d.base); err != nil {
			return nil, err
		}
	}
	d.dec = json.NewDecoder(&d.quota)
	d.dec.UseNumber()
	return d, nil
}

// next resets the quota for the next value and records its offset.
func (d *document) next() {
	d.quota.left = maxValue
	d.start = d.base + d.dec.InputOffset()
}

func (d *document) token() (json.Token, error) {
	d.next()
	t, err := d.dec.Token()
	return t, d.locate(err)
}

// value decodes the next value. what describes it for errors.
func (d *document) value(v any, what string) error {
	d.next()
	err := d.locate(d.dec.Decode(v))
	if located := (*trace.Error)(nil); err != nil && d.quota.err == nil && !errors.As(err, &located) {
		err = d.wrong(fmt.Errorf("want %s", what))
	}
	return err
}

// more reports whether the current list or object has another member.
func (d *document) more() bool {
	d.quota.left = maxValue
	return d.dec.More()
}

// open reads the delimiter that begins a list or an object.
func (d *document) open(delim json.Delim, what string) error {
	t, err := d.token()
	if err == nil && t != delim {
		err = d.wrong(fmt.Errorf("want %s", what))
	}
	return err
}

// skip skips the next value.
func (d *document) skip() error {
	depth := 0
	for {
		t, err := d.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth > maxNesting {
			return d.wrong(fmt.Errorf("nested more than %d deep", maxNesting))
		}
		if depth == 0 {
			return nil
		}
	}
}

// end checks that nothing follows, so that the whole file is hashed.
func (d *document) end() error {
	if _, err := d.token(); !errors.Is(err, errTruncated) {
		if err == nil {
			err = d.wrong(errors.New("something follows the end of the data"))
		}
		return err
	}
	return nil
}

// wrong returns an error at the current value.
func (d *document) wrong(err error) error { return d.in.at(d.start, err) }

// errTruncated is the error for a file that ends too early.
var errTruncated = errors.New("JSON data is truncated")

// locate adds the position to an error of the decoder. Type errors and errors of the stream stay
// unchanged.
func (d *document) locate(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case d.quota.err != nil:
		return d.quota.err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return d.in.at(d.in.count, errTruncated)
	case errors.As(err, &syntax):
		return d.wrong(errors.New(syntax.Error()))
	case errors.Is(err, errValue):
		return d.wrong(errValue)
	}
	return err
}

func integer(name string, n json.Number) (int64, error) {
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %s: want a whole number of at most 64 bits", name, clip([]byte(n)))
	}
	return i, nil
}

// micros reads a number of microseconds with a fraction, exactly, as nanoseconds.
func micros(name string, n json.Number) (int64, error) {
	whole, fraction, _ := strings.Cut(n.String(), ".")
	us, err := strconv.ParseInt(whole, 10, 64)
	if err == nil && len(fraction) < 3 {
		fraction += "000"[len(fraction):]
	}
	if err == nil && len(fraction) >= 3 && us > -maxMicros && us < maxMicros {
		ns, err := strconv.ParseUint(fraction[:3], 10, 64)
		if err == nil && us >= 0 {
			return us*1000 + int64(ns), nil
		}
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || !(f > -maxMicros && f < maxMicros) {
		return 0, fmt.Errorf("%s %s: want microseconds", name, clip([]byte(n)))
	}
	return int64(f * 1000), nil
}

// maxMicros bounds times, so that a difference of two fits in 64-bit nanoseconds.
const maxMicros = 1 << 52

// keysIn returns the keys of the outermost object in the beginning of a file, and its first bytes
// if it is a list. Both are empty if the beginning is not JSON.
func keysIn(head []byte) (keys []string, list string) {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), " \t\r\n")
	if len(text) == 0 {
		return nil, ""
	}
	if text[0] == '[' {
		inner := bytes.TrimLeft(text[1:], " \t\r\n")
		if len(inner) > 0 {
			return objectKeys(inner), string(inner[:1])
		}
		return nil, ""
	}
	return objectKeys(text), ""
}

// objectKeys returns the keys of the object at the beginning of a text, which may be cut off.
func objectKeys(text []byte) (keys []string) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	depth := 0
	for isKey := true; ; {
		t, err := dec.Token()
		if err != nil || depth > maxNesting {
			return keys
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
			continue
		case json.Delim(']'), json.Delim('}'):
			if depth--; depth < 0 {
				return keys
			}
		default:
			if depth > 0 {
				continue
			}
			if s, ok := t.(string); ok && isKey {
				keys = append(keys, s)
				isKey = false
				continue
			}
		}
		if depth == 0 {
			isKey = true // the end of a value of the outermost object
		}
	}
}
