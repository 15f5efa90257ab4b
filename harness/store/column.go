package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// column reads one column of a group of rows, page by page. A page has either indexes into the
// dictionary of the group or values.
type column struct {
	name    string
	pages   parquet.Pages
	page    parquet.Page // nil before the first and behind the last
	indexes []int32      // of the page, those not read yet; nil if it has values
}

// open begins with a group of rows.
func (c *column) open(chunk parquet.ColumnChunk) {
	c.close()
	c.pages = chunk.Pages()
}

// close gives up what the column holds.
func (c *column) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.pages != nil {
		_ = c.pages.Close() // only read from: nothing can be lost
	}
	c.page, c.pages, c.indexes = nil, nil, nil
}

// errShort is met where the column of a group has fewer values than the group has rows.
var errShort = errors.New("the column ends before its group of rows")

// turn reads the next page that holds anything. Its dictionary is nil if it holds values.
func (c *column) turn() (dictionary parquet.Dictionary, err error) {
	for {
		if c.page != nil {
			parquet.Release(c.page)
			c.page = nil
		}
		c.page, err = c.pages.ReadPage()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errShort
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errTruncated
		case err != nil:
			return nil, fmt.Errorf("Parquet data is corrupt: %w", err)
		case c.page.NumValues() == 0:
			continue
		}
		if dictionary = c.page.Dictionary(); dictionary != nil {
			data := c.page.Data()
			c.indexes = data.Int32()
		}
		return dictionary, nil
	}
}

// numbers reads a column of whole numbers.
type numbers struct {
	column
	dictionary []uint64 // of the group
	values     []uint64 // of the page, those not read yet
}

// next fills dst with the next values.
func (c *numbers) next(dst []uint64) error {
	for len(dst) > 0 {
		switch {
		case len(c.indexes) > 0:
			n := min(len(c.indexes), len(dst))
			for k, i := range c.indexes[:n] {
				dst[k] = c.dictionary[i]
			}
			dst, c.indexes = dst[n:], c.indexes[n:]
		case len(c.values) > 0:
			n := copy(dst, c.values)
			dst, c.values = dst[n:], c.values[n:]
		default:
			dictionary, err := c.turn()
			if err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
			if dictionary == nil {
				data := c.page.Data()
				c.values = data.Uint64()
				continue
			}
			data := dictionary.Page().Data()
			c.dictionary = data.Uint64()
		}
	}
	return nil
}

// words reads a column of texts as numbers that code gives them.
type words struct {
	column
	code       func(text []byte) (uint32, error)
	dictionary parquet.Dictionary // of the group
	codes      []uint32           // by index in the dictionary, and 1 more; 0 for what was not met yet
	values     parquet.Page       // of plain texts; nil if it has indexes
	at         int                // of the values, how many were read
}

// next fills dst with the numbers of the next texts. An error is that of the text behind those
// that are counted.
func (c *words) next(dst []uint32) (done int, err error) {
	for done < len(dst) {
		switch {
		case len(c.indexes) > 0:
			n := min(len(c.indexes), len(dst)-done)
			for k, i := range c.indexes[:n] {
				code := c.codes[i]
				if code == 0 {
					if code, err = c.meet(i); err != nil {
						return done + k, err
					}
				}
				dst[done+k] = code - 1
			}
			done, c.indexes = done+n, c.indexes[n:]
		case c.values != nil:
			if dst[done], err = c.plain(); err != nil {
				return done, err
			}
			done++
		default:
			dictionary, err := c.turn()
			if err != nil {
				return done, err
			}
			if dictionary == nil {
				c.values, c.at = c.page, 0
			} else if dictionary != c.dictionary {
				c.dictionary, c.codes = dictionary, make([]uint32, dictionary.Len())
			}
		}
	}
	return done, nil
}

// meet gives a text of the dictionary its number.
func (c *words) meet(i int32) (uint32, error) {
	n, err := c.code(c.dictionary.Index(i).ByteArray())
	c.codes[i] = n + 1
	return n + 1, err
}

// plain returns the number of the next text of a page of texts.
func (c *words) plain() (uint32, error) {
	data := c.values.Data()
	text, offsets := data.ByteArray()
	n, err := c.code(text[offsets[c.at]:offsets[c.at+1]])
	if c.at++; c.at == len(offsets)-1 {
		c.values = nil
	}
	return n, err
}
