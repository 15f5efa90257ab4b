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

// Read reads a snapshot: a pickle of protocol 2 to 5 or JSON, as it is or compressed with gzip, xz
// or zstd; the whole dictionary, perhaps wrapped in others, or only the list of its segments.
//
// Keys that are not known are ignored and listed. Whatever could run code is refused, and
// memory stays within a multiple of the bytes that have come, whatever the file claims. An error
// is one line and says at which byte of the plain content something is wrong and what was wanted.
// A snapshot takes at most [budget.Default] bytes.
func Read(r io.Reader) (*Snapshot, error) { return ReadWithin(r, budget.New(0)) }

// ReadWithin is [Read] for a snapshot that may take as much memory as a budget has.
func ReadWithin(r io.Reader, memory *budget.Budget) (*Snapshot, error) {
	s, err := read(r, memory)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// Recognize reports whether a file that begins with these bytes, decompressed, may be a snapshot:
// a pickle, or JSON. Of JSON no more than the first bracket is looked at.
func Recognize(head []byte) bool {
	if len(head) > 1 && head[0] == 0x80 {
		return head[1] >= 2 && head[1] <= 5
	}
	return isJSON(head)
}

// isJSON reports whether a text begins as a container of JSON does.
func isJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}

func read(r io.Reader, memory *budget.Budget) (*Snapshot, error) {
	plain, err := fileio.NewReaderSize(r, 4<<10) // the scanner has a window of its own
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
		return nil, m.placed(err)
	}
	m.release()
	return s, nil
}

// placed adds the place to an error of the system.
func (m *machine) placed(err error) error {
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
		if m.at >= m.weighAt {
			if err := m.weigh(); err != nil {
				return err
			}
		}
		switch {
		case op < pickle.EmptyList:
			m.pushScalar(op, scan)
		case op == pickle.Get: // most of a file, so it does not go through the others
			err = m.get(scan.Index())
		default:
			err = m.step(op, scan)
		}
		if err != nil {
			return err
		}
	}
}

// pushScalar pushes what is no container.
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

// step takes a step that builds containers or uses the memo.
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
		items, err := m.take(int(op-pickle.Tuple1) + 1)
		if err != nil {
			return err
		}
		return m.tuple(items)
	case pickle.Append:
		items, err := m.take(1)
		if err != nil {
			return err
		}
		return m.add(items)
	case pickle.SetItem:
		items, err := m.take(2)
		if err != nil {
			return err
		}
		return m.set(items)
	}
	return m.all(op)
}

// all takes a step with all that lies above the last mark.
func (m *machine) all(op pickle.Op) error {
	items, err := m.above()
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
		return m.whole(false, items, m.add)
	default: // pickle.Dict
		return m.whole(true, items, m.set)
	}
}

// take takes the n top values, which are valid until the next call.
func (m *machine) take(n int) ([]value, error) {
	for i := n - 1; i >= 0; i-- {
		var err error
		if m.taken[i], err = m.pop("a value"); err != nil {
			return nil, err
		}
	}
	return m.taken[:n], nil
}

// whole pushes a container with items. They lie where the stack grows.
func (m *machine) whole(dict bool, items []value, fill func([]value) error) error {
	n := copy(m.taken[:2], items) // the container takes the place of the first
	if err := m.open(dict); err != nil {
		return err
	}
	if err := fill(m.taken[:n]); err != nil {
		return err
	}
	return fill(items[n:])
}
