package parquet

import (
	"encoding/binary"
	"errors"
)

// The footer of a file is a structure in Thrift's compact protocol. The Parquet library allocates
// as many elements as a list claims to have. checkThrift checks it first: no list or text may claim
// more than the remaining bytes.

// The types of Thrift's compact protocol.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// thriftDepth exceeds the nesting of any valid footer.
const thriftDepth = 32

var errThrift = errors.New("the Parquet data is corrupt: the description at the end claims more than it has")

// thriftPart bounds the memory in bytes that the library takes for a part of a footer: a structure
// or a list element. A column takes 400.
const thriftPart = 512

// checkThrift reports whether b begins with a structure that lies within b, and returns its number
// of structures, lists and elements.
func checkThrift(b []byte) (parts int, ok bool) {
	c := &thriftCheck{b: b}
	c.value(thriftStruct, thriftDepth)
	return c.parts, !c.bad
}

// thriftCheck is the remaining input. Once bad is set, b is empty.
type thriftCheck struct {
	b     []byte
	bad   bool
	parts int
}

// fail sets bad and drops the input.
func (c *thriftCheck) fail() { c.b, c.bad = nil, true }

func (c *thriftCheck) skip(n uint64) {
	if n > uint64(len(c.b)) {
		c.fail()
		return
	}
	c.b = c.b[n:]
}

func (c *thriftCheck) byte() byte {
	if len(c.b) == 0 {
		c.fail()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// number reads a varint.
func (c *thriftCheck) number() uint64 {
	n, size := binary.Uvarint(c.b)
	if size <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[size:]
	return n
}

// value reads a value outside of a field header.
func (c *thriftCheck) value(kind byte, depth int) {
	c.parts++
	switch {
	case depth == 0:
		c.fail()
	case kind == thriftTrue, kind == thriftFalse, kind == thriftByte:
		c.skip(1)
	case kind < thriftDouble:
		c.number()
	case kind == thriftDouble:
		c.skip(8)
	case kind == thriftBinary:
		c.skip(c.number())
	case kind == thriftList, kind == thriftSet:
		c.list(depth)
	case kind == thriftMap:
		c.entries(depth)
	case kind == thriftStruct:
		c.fields(depth)
	default:
		c.fail()
	}
}

func (c *thriftCheck) list(depth int) {
	head := c.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = c.number()
	}
	if n > uint64(len(c.b)) {
		c.fail()
	}
	for range n {
		if c.bad {
			return
		}
		c.value(head&15, depth-1)
	}
}

func (c *thriftCheck) entries(depth int) {
	n := c.number()
	if n == 0 {
		return
	}
	kinds := c.byte()
	if n > uint64(len(c.b)) {
		c.fail()
	}
	for range n {
		if c.bad {
			return
		}
		c.value(kinds>>4, depth-1)
		c.value(kinds&15, depth-1)
	}
}

func (c *thriftCheck) fields(depth int) {
	for !c.bad {
		head := c.byte()
		kind := head & 15
		if kind == thriftStop {
			return
		}
		if head>>4 == 0 {
			c.number()
		}
		if kind != thriftTrue && kind != thriftFalse { // booleans have no further bytes
			c.value(kind, depth-1)
		}
	}
}
