package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/vramyard/vramyard/harness/trace/torch/pickle"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// Read reads a snapshot: a pickle of protocol 2 to 5 or JSON, plain or compressed with gzip, xz or
// zstd. The file holds the whole dictionary, possibly nested in others, or only its segments.
//
// Unknown keys are ignored and listed. Anything that could run code is rejected. Memory grows with
// the bytes read, not with the lengths that a file claims. An error is one line with the byte
// offset in the decompressed content. The memory is charged to the budget.
func Read(r io.Reader, memory *budget.Budget) (*Snapshot, error) {
	s, err := read(r, memory)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// Recognize reports whether a decompressed file that begins with head may be a snapshot: a pickle,
// or JSON. For JSON it looks only at the first bracket.
func Recognize(head []byte) bool {
	if len(head) > 1 && head[0] == 0x80 {
		return head[1] >= 2 && head[1] <= 5
	}
	return isJSON(head)
}

// isJSON reports whether a text begins with an opening bracket of JSON.
func isJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}

func read(r io.Reader, memory *budget.Budget) (*Snapshot, error) {
	plain, err := fileio.NewReaderSize(r, 4<<10) // the scanner has its own buffer
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	head, err := plain.Peek(64)
	if err != nil {
		return nil, err
	}
	s := new(Snapshot)
	m := newMachine(s, memory)
	if isJSON(head) {
		err = m.readJSON(plain)
	} else {
		err = m.readPickle(plain)
	}
	if err == nil {
		err = m.result()
	}
	if err != nil {
		return nil, m.withOffset(err)
	}
	m.release()
	return s, nil
}

// withOffset adds the offset to an error that lacks one.
func (m *machine) withOffset(err error) error {
	if e := (*pickle.Error)(nil); errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("at byte %d: %w", m.at, err)
}

func (m *machine) readPickle(r io.Reader) error {
	scan := pickle.NewScanner(r)
	for {
		op, err := scan.Next()
		m.at = scan.Offset()
		if err != nil || op == pickle.Stop {
			return err
		}
		if m.at >= m.chargeAt {
			if err := m.charge(); err != nil {
				return err
			}
		}
		switch {
		case op < pickle.EmptyList:
			m.pushScalar(op, scan)
		case op == pickle.Get: // fast path for most of a file
			err = m.get(scan.Index())
		default:
			err = m.step(op, scan)
		}
		if err != nil {
			return err
		}
	}
}

// pushScalar pushes a value that is not a container.
func (m *machine) pushScalar(op pickle.Op, scan *pickle.Scanner) {
	var v value
	switch op {
	case pickle.None:
		v = value{kind: isNone}
	case pickle.True:
		v = value{kind: isBool, x: 1}
	case pickle.False:
		v = value{kind: isBool}
	case pickle.Int:
		v = value{kind: isInt, x: scan.Uint()}
	case pickle.Uint:
		v = value{kind: isUint, x: scan.Uint()}
	case pickle.Wide:
		v = value{kind: isWide}
	case pickle.Float:
		v = value{kind: isFloat, x: math.Float64bits(scan.Float())}
	case pickle.Text:
		v = value{kind: isText, x: m.text(scan.Text())}
	}
	m.stack = append(m.stack, v)
}

// step executes an operation that builds containers or uses the memo.
func (m *machine) step(op pickle.Op, scan *pickle.Scanner) error {
	switch op {
	case pickle.EmptyList:
		return m.open(false)
	case pickle.EmptyDict:
		return m.open(true)
	case pickle.Mark:
		return m.mark()
	case pickle.Put:
		return m.put(scan.Index())
	case pickle.Memoize:
		return m.memoize()
	case pickle.EmptyTuple:
		return m.tuple(nil)
	case pickle.Tuple1, pickle.Tuple2, pickle.Tuple3:
		items, err := m.popN(int(op-pickle.Tuple1) + 1)
		if err != nil {
			return err
		}
		return m.tuple(items)
	case pickle.Append:
		items, err := m.popN(1)
		if err != nil {
			return err
		}
		return m.add(items)
	case pickle.SetItem:
		items, err := m.popN(2)
		if err != nil {
			return err
		}
		return m.set(items)
	}
	return m.stepAll(op)
}

// stepAll executes an operation on all values above the last mark.
func (m *machine) stepAll(op pickle.Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	switch op {
	case pickle.Appends:
		return m.add(items)
	case pickle.SetItems:
		return m.set(items)
	case pickle.Tuple:
		return m.tuple(items)
	case pickle.List:
		return m.pushContainer(false, items, m.add)
	default: // pickle.Dict
		return m.pushContainer(true, items, m.set)
	}
}

// popN pops the n top values, which are valid until the next call.
func (m *machine) popN(n int) ([]value, error) {
	for i := n - 1; i >= 0; i-- {
		var err error
		if m.taken[i], err = m.pop("a value"); err != nil {
			return nil, err
		}
	}
	return m.taken[:n], nil
}

// pushContainer pushes a container with items, which may be on top of the stack.
func (m *machine) pushContainer(dict bool, items []value, fill func([]value) error) error {
	n := copy(m.taken[:2], items) // the container overwrites the first items on the stack
	if err := m.open(dict); err != nil {
		return err
	}
	if err := fill(m.taken[:n]); err != nil {
		return err
	}
	return fill(items[n:])
}
