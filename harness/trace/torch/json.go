package torch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/vramyard/vramyard/harness/trace/torch/pickle"
)

// readJSON executes a JSON document as the equivalent pickle operations.
func (m *machine) readJSON(r io.Reader) error {
	d := json.NewDecoder(&tokenLimiter{m: m, r: r})
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return m.jsonError(d, err)
		}
		m.at = d.InputOffset() - 1
		if m.at >= m.chargeAt {
			if err := m.charge(); err != nil {
				return err
			}
		}
		if err := m.token(token); err != nil {
			return err
		}
		if len(m.marks) == 0 {
			break
		}
	}
	m.at = d.InputOffset()
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return m.errorf("bytes after the value, want the end of the file")
	}
	return nil
}

// tokenLimiter is a reader that rejects JSON tokens and gaps longer than pickle.MaxText, because a
// json.Decoder buffers a token whole.
type tokenLimiter struct {
	m *machine
	r io.Reader
	n int64 // bytes read
}

// Read implements io.Reader. The decoder calls it when the next token is incomplete.
func (g *tokenLimiter) Read(b []byte) (int, error) {
	if g.n-g.m.at > pickle.MaxText {
		return 0, g.m.errorf("a token of more than %d bytes, want shorter strings", pickle.MaxText)
	}
	n, err := g.r.Read(b)
	g.n += int64(n)
	return n, err
}

// jsonError adds the position to an error of the decoder.
func (m *machine) jsonError(d *json.Decoder, err error) error {
	m.at = d.InputOffset()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return &pickle.Error{At: syntax.Offset, Text: syntax.Error() + ", want JSON"}
	}
	if e := (*pickle.Error)(nil); errors.As(err, &e) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return m.errorf("the file ends, want the rest of the JSON")
	}
	return err
}

// token executes one token.
func (m *machine) token(token json.Token) error {
	switch t := token.(type) {
	case json.Delim:
		if t == '{' || t == '[' {
			if err := m.open(t == '{'); err != nil {
				return err
			}
			return m.mark()
		}
		items, err := m.popMark()
		if err != nil {
			return err
		}
		if t == '}' {
			return m.set(items)
		}
		return m.add(items)
	case string:
		m.push(value{kind: isText, x: m.text([]byte(t))})
	case bool:
		v := value{kind: isBool}
		if t {
			v.x = 1
		}
		m.push(v)
	case nil:
		m.push(value{kind: isNone})
	case json.Number:
		v, err := m.number(t.String())
		if err != nil {
			return err
		}
		m.push(v)
	}
	return nil
}

// number returns a JSON number: an integer if it is written as one, else a float.
func (m *machine) number(text string) (value, error) {
	if x, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value{kind: isInt, x: uint64(x)}, nil
	} else if errors.Is(err, strconv.ErrRange) {
		if x, err := strconv.ParseUint(text, 10, 64); err == nil {
			return value{kind: isUint, x: x}, nil
		}
		return value{kind: isWide}, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return value{}, m.errorf("%s", fmt.Sprintf("the number %s, want a smaller one", text))
	}
	return value{kind: isFloat, x: math.Float64bits(x)}, nil
}
