package torch

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"unicode/utf8"

	"github.com/vramyard/vramyard/harness/trace/torch/pickle"
	"github.com/vramyard/vramyard/internal/budget"
)

// maxNesting is the maximum depth of nested containers. A snapshot has seven levels; wrappers add a
// few.
const maxNesting = 100

// machine converts the values that a file builds to rows. A dictionary is complete, and becomes a
// row, when it is put into another container; it cannot change after that. So no value can contain
// itself; a file that attempts it is rejected.
type machine struct {
	*Interner

	stack []value
	marks []int // positions in stack
	memo  memo
	nodes arena[node]
	spare []uint64 // indexes of nodes to reuse

	texts  arena[text]
	textAt table // texts by index plus 1

	histories   []*History
	grown       []growth             // histories that have received entries, in order
	entries     uint64               // number of entries in grown
	streams     map[int64]uint16     // of the last history, by handle
	pools       map[[2]uint64]uint16 // of the last history
	pairs       [][2]uint64
	pairAt      map[[2]uint64]uint64 // index of pairs
	blocks      arena[Block]
	segments    arena[segmentRow]
	annotations arena[Annotation]
	runs        []run    // lists of rows
	scratch     []uint32 // frames of the stack that is being built
	taken       [3]value // result of popN
	printedRoom int      // bytes of printed settings still allowed

	at        int64 // offset of the current operation, for messages
	chargeAt  int64 // offset of the next call of charge
	textBytes int   // length of all texts
	itemBytes int   // capacity of the items of all nodes
	shutBytes int   // bytes of all histories except the last, which no longer grow; without packed entries
	rowBytes  int   // bytes of all packed entries
	listed    int   // bytes of the rows of all runs, should they be copied out of their arenas
	charged   int64 // bytes taken from the budget
	memory    *budget.Budget
}

// growth is a history and the number of its first entry.
type growth struct {
	first uint64
	hist  *History
}

// node is a container that is not a row, or not yet.
type node struct {
	items  []value // for a dictionary: key, value, key, value, …
	at     int64   // offset of its beginning
	memo   int64   // its index in the memo, -1 if it has none
	depth  uint8   // levels of containers, including itself
	dict   bool
	done   bool  // complete; nothing may be added
	shared bool  // referred to by more than one value
	seen   bool  // visited by find
	as     value // the row that it was converted to; zero if it was not
}

// text is a string of the file.
type text struct {
	text  string
	id    uint32 // index in Snapshot.Strings; 0 if it is not used there
	word  word   // its meaning as a key or value
	noted uint8  // bit set of the rows in which it was recorded as an unknown key
}

func newMachine(s *Snapshot, memory *budget.Budget) *machine {
	m := &machine{Interner: NewInterner(s), pairAt: map[[2]uint64]uint64{}, printedRoom: maxPrinted, memory: memory}
	for w, name := range words {
		if name != "" {
			m.texts.ref(m.text([]byte(name))).word = word(w)
		}
	}
	return m
}

func (m *machine) errorf(format string, a ...any) error {
	return &pickle.Error{At: m.at, Text: fmt.Sprintf(format, a...)}
}

// push pushes a value. A row that continues the row on top is merged with it.
func (m *machine) push(v value) {
	if v.isRow() {
		if k := len(m.stack) - 1; k >= m.floor() && m.stack[k].joins(v) {
			m.stack[k].n += v.n
			return
		}
	}
	m.stack = append(m.stack, v)
}

// pop pops one value. Of merged rows it pops the last.
func (m *machine) pop(want string) (value, error) {
	k := len(m.stack) - 1
	if k < m.floor() {
		return value{}, m.errorf("nothing on the stack, want %s", want)
	}
	v := m.stack[k]
	if v.n > 1 {
		m.stack[k].n--
		v.x, v.n = v.x+uint64(v.n-1), 1
		return v, nil
	}
	m.stack = m.stack[:k]
	return v, nil
}

// floor returns the lowest position of the stack that an operation may pop: just above the last
// mark.
func (m *machine) floor() int {
	if k := len(m.marks); k > 0 {
		return m.marks[k-1]
	}
	return 0
}

// mark pushes a mark.
func (m *machine) mark() error {
	if len(m.marks) == maxNesting {
		return m.errorf("containers nested too deep, want at most %d levels", maxNesting)
	}
	m.marks = append(m.marks, len(m.stack))
	return nil
}

// popMark pops the last mark and returns the values above it, which are valid until the next push.
func (m *machine) popMark() ([]value, error) {
	k := len(m.marks) - 1
	if k < 0 {
		return nil, m.errorf("no mark on the stack, want one")
	}
	from := m.marks[k]
	m.marks = m.marks[:k]
	items := m.stack[from:]
	m.stack = m.stack[:from]
	return items, nil
}

func (m *machine) text(b []byte) uint64 {
	m.textAt.reserve(m.texts.n, func(id uint32) uint64 { return maphash.String(m.seed, m.texts.ref(uint64(id-1)).text) })
	at := m.textAt.find(maphash.Bytes(m.seed, b), func(id uint32) bool {
		return m.texts.ref(uint64(id-1)).text == string(b)
	})
	if *at != 0 {
		return uint64(*at - 1)
	}
	if !utf8.Valid(b) { // everything derived from a snapshot is UTF-8
		return m.text(bytes.ToValidUTF8(b, []byte("\ufffd")))
	}
	m.textBytes += len(b)
	id := m.texts.add(text{text: string(b)})
	*at = uint32(id + 1)
	return id
}

// stringOf returns the index of a text in the snapshot.
func (m *machine) stringOf(v value) uint32 {
	t := m.texts.ref(v.x)
	if t.id == 0 && t.text != "" { // texts are unique, so the interner is not needed
		t.id = uint32(len(m.s.Strings))
		m.s.Strings = append(m.s.Strings, t.text)
	}
	return t.id
}

// open pushes a new container. A dictionary on top of the stack that has keys is then complete: the
// new container is the next element of a list.
func (m *machine) open(dict bool) error {
	if k := len(m.stack) - 1; k >= m.floor() && m.stack[k].kind == isDict {
		if nd := m.nodes.ref(m.stack[k].x); !nd.done && len(nd.items) > 0 {
			v, err := m.pop("a dictionary")
			if err != nil {
				return err
			}
			if v, err = m.finish(v); err != nil {
				return err
			}
			m.push(v)
		}
	}
	kind := isList
	if dict {
		kind = isDict
	}
	m.stack = append(m.stack, value{kind: kind, x: m.newNode(dict)})
	return nil
}

func (m *machine) newNode(dict bool) uint64 {
	if k := len(m.spare) - 1; k >= 0 {
		id := m.spare[k]
		m.spare = m.spare[:k]
		nd := m.nodes.ref(id)
		*nd = node{items: nd.items[:0], at: m.at, memo: -1, dict: dict}
		return id
	}
	return m.nodes.add(node{at: m.at, memo: -1, dict: dict})
}

// target returns the container on top of the stack, to be changed by an operation.
func (m *machine) target(dict bool) (*node, error) {
	want := kindNames[isList]
	if dict {
		want = kindNames[isDict]
	}
	k := len(m.stack) - 1
	if k < m.floor() {
		return nil, m.errorf("nothing on the stack, want %s", want)
	}
	v := m.stack[k]
	if v.kind != isList && v.kind != isDict {
		return nil, m.errorf("an operation on %s, want it on %s", m.describe(v), want)
	}
	nd := m.nodes.ref(v.x)
	switch {
	case nd.done:
		return nil, m.errorf("a change of %s that is already part of a container, perhaps of itself, want it complete before",
			kindNames[v.kind])
	case nd.dict != dict:
		return nil, m.errorf("an operation on %s, want it on %s", kindNames[v.kind], want)
	}
	return nd, nil
}

func (m *machine) add(items []value) error {
	nd, err := m.target(false)
	if err != nil {
		return err
	}
	for _, v := range items {
		if v.kind == isList || v.kind == isDict {
			if v, err = m.finish(v); err != nil {
				return err
			}
		}
		if k := len(nd.items) - 1; k >= 0 && nd.items[k].joins(v) {
			nd.items[k].n += v.n
			continue
		}
		if err := m.keep(nd, v); err != nil {
			return err
		}
	}
	return nil
}

// keep appends a value to a container.
func (m *machine) keep(nd *node, v value) error {
	if k := len(nd.items); k < cap(nd.items) {
		nd.items = nd.items[:k+1]
		nd.items[k] = v
		return nil
	}
	return m.grow(nd, v)
}

// grow appends a value to a container whose capacity is used up.
func (m *machine) grow(nd *node, v value) error {
	before := cap(nd.items)
	nd.items = append(nd.items, v)
	after := cap(nd.items)
	m.itemBytes += (after - before) * valueBytes
	if after > 1<<16 { // one operation can put the whole stack into a container
		return m.charge()
	}
	return nil
}

// set adds keys and values to the dictionary on top of the stack.
func (m *machine) set(items []value) error {
	nd, err := m.target(true)
	if err != nil {
		return err
	}
	if len(items)%2 != 0 {
		return m.errorf("a key without a value, want pairs")
	}
	for i := 0; i < len(items); i += 2 {
		if key := items[i]; key.kind > isText {
			return m.errorf("%s as a key, want a string", m.describe(key))
		}
		v, err := m.finish(items[i+1])
		if err != nil {
			return err
		}
		if v.n > 1 {
			return m.errorf("%s as a key, want a string", m.describe(v))
		}
		if err := m.keep(nd, items[i]); err != nil {
			return err
		}
		if err := m.keep(nd, v); err != nil {
			return err
		}
	}
	return nil
}

// tuple pushes an immutable list of values.
func (m *machine) tuple(items []value) error {
	id := m.newNode(false)
	nd := m.nodes.ref(id)
	for _, v := range items {
		v, err := m.finish(v)
		if err == nil {
			err = m.keep(nd, v)
		}
		if err != nil {
			return err
		}
	}
	v, err := m.finish(value{kind: isList, x: id})
	if err == nil {
		m.push(v)
	}
	return err
}

// describe describes a value for error messages.
func (m *machine) describe(v value) string {
	if v.kind == isList || v.kind == isDict {
		if as := m.nodes.ref(v.x).as; as.kind != 0 {
			v = as
		}
	}
	if v.kind == isText {
		return fmt.Sprintf("%s %s", kindNames[isText], quote(m.texts.ref(v.x).text))
	}
	return kindNames[v.kind]
}

func quote(text string) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// finish completes a value that is put into a container. A container becomes a row, or a list of
// rows, if its content allows.
func (m *machine) finish(v value) (value, error) {
	if v.kind != isList && v.kind != isDict {
		return v, nil
	}
	nd := m.nodes.ref(v.x)
	if nd.done {
		if nd.as.kind != 0 {
			return nd.as, nil
		}
		return v, nil
	}
	nd.done = true
	var as value
	var err error
	if nd.dict {
		as, err = m.row(nd)
	} else {
		as, err = m.list(nd)
	}
	if err != nil {
		return value{}, err
	}
	if as.kind == 0 {
		return v, m.measure(nd)
	}
	nd.as = as
	if nd.shared {
		return as, nil
	}
	if nd.memo >= 0 {
		m.memo.replace(uint32(nd.memo), v, as)
	}
	if cap(nd.items) > arenaRows {
		m.itemBytes -= cap(nd.items) * valueBytes
		nd.items = nil
	}
	m.spare = append(m.spare, v.x)
	return as, nil
}

// measure computes the depth of a container and bounds it.
func (m *machine) measure(nd *node) error {
	deepest := uint8(0)
	for _, v := range nd.items {
		if v.kind == isList || v.kind == isDict {
			deepest = max(deepest, m.nodes.ref(v.x).depth)
		}
	}
	if deepest == maxNesting {
		return m.errorf("containers nested too deep, want at most %d levels", maxNesting)
	}
	nd.depth = deepest + 1
	return nil
}
