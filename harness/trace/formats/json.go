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

// maxValue is the longest single value of a JSON file, or text of a protocol buffer, that is read,
// in bytes. Long lists are read value by value, so it bounds what a reader holds of the file.
const maxValue = 16 << 20

// maxNesting bounds how deep a value that is skipped may be nested.
const maxNesting = 1000

// document reads a JSON file piece by piece.
type document struct {
	in    *Input
	dec   *json.Decoder
	base  int64 // where the JSON begins, behind a byte order mark
	start int64 // where the present value began
	quota quota
}

// quota is a reader that fails when one value asks for too much.
type quota struct {
	r    io.Reader
	left int
	err  error // that of r, which is not that of its content
}

// errValue is what is wrong with a value that is too long.
var errValue = fmt.Errorf("a value is longer than %d bytes", maxValue)

// Read implements io.Reader.
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

// newDocument begins to read, behind a byte order mark if there is one.
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

// next renews what one value may take and remembers where it begins.
func (d *document) next() {
	d.quota.left = maxValue
	d.start = d.base + d.dec.InputOffset()
}

func (d *document) token() (json.Token, error) {
	d.next()
	t, err := d.dec.Token()
	return t, d.blame(err)
}

// value decodes the next value; what says what it should be.
func (d *document) value(v any, what string) error {
	d.next()
	err := d.blame(d.dec.Decode(v))
	if located := (*trace.Error)(nil); err != nil && d.quota.err == nil && !errors.As(err, &located) {
		err = d.wrong(fmt.Errorf("want %s", what))
	}
	return err
}

// more reports whether the present list or object has another member.
func (d *document) more() bool {
	d.quota.left = maxValue
	return d.dec.More()
}

// open takes the delimiter that begins a list or an object.
func (d *document) open(delim json.Delim, what string) error {
	t, err := d.token()
	if err == nil && t != delim {
		err = d.wrong(fmt.Errorf("want %s", what))
	}
	return err
}

// skip passes over the next value, whatever it is.
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

// end makes sure that nothing follows, so that the file is whole and all of it is hashed.
func (d *document) end() error {
	if _, err := d.token(); !errors.Is(err, errTruncated) {
		if err == nil {
			err = d.wrong(errors.New("something follows the end of the data"))
		}
		return err
	}
	return nil
}

// wrong blames the present value.
func (d *document) wrong(err error) error { return d.in.at(d.start, err) }

// errTruncated is what is wrong with a file that ends too early.
var errTruncated = errors.New("JSON data is truncated")

// blame says where an error of the decoder is. What it makes of a value of another kind is left as
// it is, and so is an error of the stream, which has no place.
func (d *document) blame(err error) error {
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

// integer reads a whole number.
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

// maxMicros bounds a time, so that it and the difference of two fit nanoseconds of 64 bits.
const maxMicros = 1 << 52

// keysIn returns the keys of the outermost object that the beginning of a file shows, and whether
// it begins as JSON at all: with an object, or with a list, whose first members are returned as
// they begin.
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

// objectKeys returns the keys of the object that text begins with, as far as it goes.
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
			isKey = true // a value of the outermost object ends
		}
	}
}
