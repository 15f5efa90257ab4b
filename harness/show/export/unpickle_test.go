package export_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// list is a list of a pickle. Lists and dictionaries are shared by reference, as in the viewer.
type list struct{ items []any }

type dict map[string]any

// tuple is a tuple of a pickle.
type tuple []any

// marker is the value that the opcode MARK pushes.
type marker struct{}

// unpickler reads a pickle as the viewer does: with its opcodes alone, and without any sizes that
// its stack does not bear.
type unpickler struct {
	in    *bufio.Reader
	stack []any
	memo  []any
}

// mostItems is the most items that are appended at once.
const mostItems = 1000

// unpickle reads a pickle.
func unpickle(r io.Reader) (v any, err error) {
	u := &unpickler{in: bufio.NewReader(r)}
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("unpickle: %v", p)
		}
	}()
	for {
		op, err := u.in.ReadByte()
		if err != nil {
			return nil, err
		}
		if op == '.' {
			if len(u.stack) != 1 {
				return nil, fmt.Errorf("%d values at the end", len(u.stack))
			}
			return u.stack[0], nil
		}
		u.step(op)
	}
}

func (u *unpickler) bytes(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(u.in, b); err != nil {
		panic(err)
	}
	return b
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() any {
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v
}

// popMark pops the last mark with the values above it, and returns the values.
func (u *unpickler) popMark() []any {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(marker); ok {
			items := append([]any{}, u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items
		}
	}
	panic("no mark")
}

func (u *unpickler) top() any { return u.stack[len(u.stack)-1] }

func (u *unpickler) step(op byte) {
	switch op {
	case 0x80: // PROTO
		if v := u.bytes(1)[0]; v < 2 || v > 4 {
			panic(fmt.Sprintf("Unhandled version %d", v))
		}
	case 0x95: // FRAME
		u.bytes(8)
	case '(':
		u.push(marker{})
	case '}':
		u.push(dict{})
	case ']':
		u.push(&list{})
	case ')':
		u.push(tuple{})
	case 0x85, 0x86, 0x87:
		n := int(op-0x85) + 1
		at := len(u.stack) - n
		t := append(tuple{}, u.stack[at:]...)
		u.stack = append(u.stack[:at], t)
	case 't':
		u.push(tuple(u.popMark()))
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case 'a':
		v := u.pop()
		l := u.top().(*list)
		l.items = append(l.items, v)
	case 'e':
		items := u.popMark()
		if len(items) > mostItems {
			panic(fmt.Sprintf("Maximum call stack size exceeded: %d items at once", len(items)))
		}
		l := u.top().(*list)
		l.items = append(l.items, items...)
	case 's':
		v, k := u.pop(), u.pop().(string)
		u.top().(dict)[k] = v
	case 'u':
		items := u.popMark()
		if len(items) > 2*mostItems {
			panic("too many items at once")
		}
		for i := 0; i < len(items); i += 2 {
			u.top().(dict)[items[i].(string)] = items[i+1]
		}
	default:
		u.atom(op)
	}
}

// atom reads a value without parts, or executes an opcode of the memo.
func (u *unpickler) atom(op byte) {
	switch op {
	case 'K':
		u.push(int64(u.bytes(1)[0]))
	case 'M':
		u.push(int64(binary.LittleEndian.Uint16(u.bytes(2))))
	case 'J':
		u.push(int64(int32(binary.LittleEndian.Uint32(u.bytes(4)))))
	case 0x8a: // LONG1
		b := u.bytes(int(u.bytes(1)[0]))
		if len(b) > 8 {
			panic("a number of more than 64 bits")
		}
		v := int64(0)
		for i, x := range b {
			v |= int64(x) << (8 * i)
		}
		if n := len(b); n > 0 && n < 8 && b[n-1] >= 0x80 {
			v -= 1 << (8 * n)
		}
		u.push(v)
	case 'G':
		u.push(math.Float64frombits(binary.BigEndian.Uint64(u.bytes(8))))
	case 0x8c: // SHORT_BINUNICODE
		u.push(string(u.bytes(int(u.bytes(1)[0]))))
	case 'X':
		u.push(string(u.bytes(int(binary.LittleEndian.Uint32(u.bytes(4))))))
	case 0x94: // MEMOIZE
		u.memo = append(u.memo, u.top())
	case 'q', 'r':
		i := u.index(op == 'r')
		for len(u.memo) <= i {
			u.memo = append(u.memo, nil)
		}
		u.memo[i] = u.top()
	case 'h', 'j':
		u.push(u.memo[u.index(op == 'j')])
	default:
		panic(fmt.Sprintf("Unhandled opcode %#x", op))
	}
}

// index reads an index of the memo.
func (u *unpickler) index(long bool) int {
	if long {
		return int(binary.LittleEndian.Uint32(u.bytes(4)))
	}
	return int(u.bytes(1)[0])
}
