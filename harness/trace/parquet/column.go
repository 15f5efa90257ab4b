package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// errShort is the error for a column chunk with fewer values than its row group has rows.
var errShort = errors.New("ends before its group of rows")

// repeated reads a page that repeats one value. Most columns of most traces have only such pages.
type repeated[T comparable] struct {
	value    T
	left     int  // unread values of the current page
	filled   int  // leading values of the last batch that were set by batch
	constant bool // the last batch has one value
}

// batch sets all of out if the page has enough values, and reports whether it does.
func (r *repeated[T]) batch(out []T) bool {
	if r.constant = r.left >= len(out); !r.constant {
		r.filled = 0
		return false
	}
	if r.filled < len(out) || out[0] != r.value {
		r.part(out)
		r.filled = len(out)
		return true
	}
	r.left -= len(out)
	return true
}

// part sets the beginning of dst to the unread values and returns how many it has set.
func (r *repeated[T]) part(dst []T) int {
	n := min(r.left, len(dst))
	for k := range dst[:n] {
		dst[k] = r.value
	}
	r.left -= n
	return n
}

// numbers reads a column of integers.
type numbers struct {
	*pages
	repeated[uint64]
	out        []uint64 // values of the current batch of rows
	dictionary []int64  // dictionary of the row group; nil before its page
	ranks      []uint32 // unread dictionary indexes of the current page
	values     []int64  // unread values of the current page

	// Buffers of the current page.
	rankBuf  []uint32
	valueBuf []int64
}

// open starts a row group.
func (c *numbers) open(r io.ReaderAt, chunk *format.ColumnMetaData) error {
	c.dictionary, c.ranks, c.values, c.left = nil, nil, nil, 0
	return c.pages.open(r, chunk)
}

// next sets the first n of out to the next values.
func (c *numbers) next(n int) (int, error) {
	dst := c.out[:n]
	if c.batch(dst) {
		return n, nil
	}
	for len(dst) > 0 {
		switch {
		case c.left > 0:
			dst = dst[c.part(dst):]
		case len(c.ranks) > 0:
			n := min(len(c.ranks), len(dst))
			for k, r := range c.ranks[:n] {
				dst[k] = uint64(c.dictionary[r])
			}
			dst, c.ranks = dst[n:], c.ranks[n:]
		case len(c.values) > 0:
			n := min(len(c.values), len(dst))
			for k, v := range c.values[:n] {
				dst[k] = uint64(v)
			}
			dst, c.values = dst[n:], c.values[n:]
		default:
			if err := c.nextPage(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// nextPage decodes the next page into the dictionary, ranks or values.
func (c *numbers) nextPage() error {
	p, err := c.pages.next()
	if err != nil {
		return err
	}
	switch {
	case p.dictionary:
		c.dictionary, err = p.numbers(nil)
	case p.indexes:
		if rank, ok := p.run(len(c.dictionary)); ok {
			c.value, c.left = uint64(c.dictionary[rank]), p.count
			return nil
		}
		c.rankBuf, err = p.ranks(c.rankBuf, len(c.dictionary))
		c.ranks = c.rankBuf
	default:
		c.valueBuf, err = p.numbers(c.valueBuf)
		c.values = c.valueBuf
	}
	return err
}

// words reads a column of texts and converts them to numbers with code.
type words struct {
	*pages
	repeated[uint32]
	out   []uint32 // numbers of the current batch of rows
	code  func(text []byte) (uint32, error)
	texts [][]byte // dictionary of the row group
	codes []uint32 // by dictionary index: the text's number plus 1, or 0 if it is not known yet
	ranks []uint32 // unread dictionary indexes of the current page
	plain [][]byte // unread texts of the current page

	// Buffers of the dictionary and the current page.
	kept    []byte
	list    [][]byte
	rankBuf []uint32
}

// open starts a row group.
func (c *words) open(r io.ReaderAt, chunk *format.ColumnMetaData) error {
	c.texts, c.codes, c.ranks, c.plain, c.left = c.texts[:0], c.codes[:0], nil, nil, 0
	return c.pages.open(r, chunk)
}

// errText is an error in the value of a text, not in its encoding.
type errText struct{ error }

// next sets the first n of out to the numbers of the next texts and returns how many it has set. An
// errText concerns the text after those.
func (c *words) next(n int) (done int, err error) {
	dst := c.out[:n]
	if c.batch(dst) {
		return n, nil
	}
	for done < len(dst) {
		switch {
		case c.left > 0:
			done += c.part(dst[done:])
		case len(c.ranks) > 0:
			n := min(len(c.ranks), len(dst)-done)
			for k, r := range c.ranks[:n] {
				code := c.codes[r]
				if code == 0 {
					if code, err = c.lookUp(r); err != nil {
						return done + k, errText{err}
					}
				}
				dst[done+k] = code - 1
			}
			done, c.ranks = done+n, c.ranks[n:]
		case len(c.plain) > 0:
			if dst[done], err = c.code(c.plain[0]); err != nil {
				return done, errText{err}
			}
			done, c.plain = done+1, c.plain[1:]
		default:
			if err := c.nextPage(); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// lookUp determines the number of a dictionary text.
func (c *words) lookUp(rank uint32) (uint32, error) {
	n, err := c.code(c.texts[rank])
	c.codes[rank] = n + 1
	return n + 1, err
}

// nextPage decodes the next page into the dictionary, ranks or plain texts.
func (c *words) nextPage() error {
	p, err := c.pages.next()
	if err != nil {
		return err
	}
	if p.indexes {
		// A text without a number yet is looked up where it is first needed, for the row of its error.
		if rank, ok := p.run(len(c.texts)); ok && c.codes[rank] != 0 {
			c.value, c.left = c.codes[rank]-1, p.count
			return nil
		}
		c.rankBuf, err = p.ranks(c.rankBuf, len(c.texts))
		c.ranks = c.rankBuf
		return err
	}
	if p.delta {
		return fmt.Errorf("a page of texts that is encoded as %v", format.DeltaBinaryPacked)
	}
	if p.count > len(p.data)/4 {
		return errValues
	}
	var list [][]byte
	if p.dictionary { // needed longer than the page
		if err := c.keep(&p); err != nil {
			return err
		}
		list = c.texts
	} else {
		if c.list, err = sized(p.memory, c.list, p.count); err != nil {
			return err
		}
		list, c.plain = c.list, c.list
	}
	return p.texts(func(k int, text []byte) { list[k] = text })
}

// keep copies the dictionary on a page, whose buffer is reused.
func (c *words) keep(p *page) (err error) {
	if c.texts, err = sized(p.memory, c.texts, p.count); err != nil {
		return err
	}
	if c.codes, err = sized(p.memory, c.codes, p.count); err != nil {
		return err
	}
	if c.kept, err = sized(p.memory, c.kept, len(p.data)); err != nil {
		return err
	}
	clear(c.codes)
	copy(c.kept, p.data)
	p.data = c.kept
	return nil
}
