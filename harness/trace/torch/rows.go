package torch

import (
	"fmt"
	"math"
	"strings"
)

// maxDevice bounds the ordinals of devices, because a snapshot has a list for each of them.
const maxDevice = 1 << 12

// segmentRow is a segment whose blocks may lack addresses.
type segmentRow struct {
	seg    Segment
	device int
	blocks value
	sums   bool // the file has allocated, active and requested bytes
}

// noAddr marks blocks without an address, as in files before PyTorch 2.1.
const noAddr uint64 = math.MaxUint64

// wants describes the expected value of each key. The default is a number of bytes.
var wants = [lastKey]string{
	keyAction: "a string", keyAddr: "an address", keyAddress: "an address", keyStream: "the handle of a stream",
	keyTime: "microseconds", keyFrames: "a list of frames", keyCategory: "a string", keyConf: "a string",
	keyPool: "a pair of integers", keySegmentPool: "a pair of integers", keyDevice: "the ordinal of a device, below 4096",
	keyType: "a string", keyExpandable: "a truth value", keyBlocks: "a list of blocks",
	keyState: "active_allocated, active_pending_free or inactive", keyHistory: "a list of dictionaries",
	keyFile: "a string", keyName: "a string", keyLine: "a number", keyStage: "START or END",
}

// errValue returns the error for a bad value of a key.
func (m *machine) errValue(row rowKind, key, v value) error {
	want := wants[m.wordOf(key)]
	if want == "" {
		want = "a number of bytes"
	}
	return m.errorf("%s of %s is %s, want %s", m.texts.ref(key.x).text, row.article(), m.describe(v), want)
}

// errMissing returns the error for a missing key.
func (m *machine) errMissing(row rowKind, key word) error {
	return m.errorf("%s without %s, want it", row.article(), words[key])
}

// wordOf returns the word that a value spells, or noWord.
func (m *machine) wordOf(v value) word {
	if v.kind != isText {
		return noWord
	}
	return m.texts.ref(v.x).word
}

// ignore lists an unknown key, once for each kind of row.
func (m *machine) ignore(row rowKind, key value) {
	if key.kind != isText {
		return
	}
	if t := m.texts.ref(key.x); t.noted&(1<<row) == 0 {
		t.noted |= 1 << row
		m.s.Unknown = append(m.s.Unknown, rowNames[row]+"."+shortened(t.text))
	}
}

// maxNoted is the maximum length of a listed unknown key, in bytes.
const maxNoted = 100

func shortened(text string) string {
	if len(text) <= maxNoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxNoted], "") + "…"
}

// keys returns the known keys of a dictionary.
func (m *machine) keys(nd *node) keySet {
	var h keySet
	for i := 0; i < len(nd.items); i += 2 {
		h = h.with(m.wordOf(nd.items[i]))
	}
	return h
}

// row converts a dictionary to a row. Other dictionaries give the zero value.
func (m *machine) row(nd *node) (value, error) {
	switch h := m.keys(nd); h.kindOf() {
	case entryRow:
		return m.entry(nd, h)
	case frameRow:
		return m.frame(nd)
	case blockRow:
		return m.block(nd, h)
	case segmentRowKind:
		return m.segment(nd, h)
	case annotationRow:
		return m.annotation(nd)
	}
	return value{}, nil
}

// actions maps words to actions. A viewer merges the two entries of a free and writes "free".
var actions = map[word]Action{
	wordAlloc: ActionAlloc, wordFreeRequested: ActionFreeRequested, wordFreeCompleted: ActionFreeCompleted,
	wordFree: ActionFreeCompleted, wordSegmentAlloc: ActionSegmentAlloc, wordSegmentFree: ActionSegmentFree,
	wordSegmentMap: ActionSegmentMap, wordSegmentUnmap: ActionSegmentUnmap, wordOOM: ActionOOM,
	wordSnapshot: ActionSnapshot, wordConf: ActionConf,
}

func (m *machine) entry(nd *node, h keySet) (value, error) {
	e := Entry{Time: NoTime}
	var stream int64
	var conf string
	for i := 0; i < len(nd.items); i += 2 {
		key, v, ok := nd.items[i], nd.items[i+1], true
		switch m.wordOf(key) {
		case keyAction:
			e.Action, ok = m.action(v)
		case keyAddr, keyDeviceFree:
			e.Addr, ok = v.address()
		case keySize:
			e.Size, ok = v.count()
		case keyStream:
			stream, ok = v.handle()
		case keyTime:
			e.Time, ok = v.int()
			ok = ok && e.Time >= 0
		case keyFrames:
			e.Stack, ok = v.stack()
		case keyConf:
			conf, ok = m.plain(v)
			ok = ok && v.kind == isText
		case keyCategory:
			if ok = v.kind == isText; ok {
				e.Category = m.stringOf(v)
			}
		case keyPool, keySegmentPool:
			e.Pool, ok = m.poolOf(v)
		default:
			m.ignore(entryRow, key)
		}
		if !ok {
			return value{}, m.errValue(entryRow, key, v)
		}
	}
	if !h.all(1 << keySize) {
		return value{}, m.errMissing(entryRow, keySize)
	}
	var ok bool
	if e.Stream, ok = m.streamOf(stream); !ok {
		return value{}, m.errorf("%v", errTooMany)
	}
	hist := m.history()
	if e.Action == ActionConf {
		hist.addConf(&e, conf)
	}
	if hist.Len() == 0 {
		m.grown = append(m.grown, growth{m.entries, hist})
	}
	before := hist.packed
	hist.Append(e)
	m.rowBytes += hist.packed - before
	m.entries++
	return value{kind: isEntry, x: m.entries - 1, n: 1}, nil
}

func (m *machine) action(v value) (Action, bool) {
	if v.kind != isText {
		return 0, false
	}
	t := m.texts.ref(v.x)
	if a, ok := actions[t.word]; ok {
		return a, true
	}
	if t.noted&(1<<otherRow) == 0 {
		t.noted |= 1 << otherRow
		m.s.Unknown = append(m.s.Unknown, "action."+shortened(t.text))
	}
	return ActionOther, true
}

// handle returns the handle of a stream: a pointer, which PyTorch writes as a signed integer.
func (v value) handle() (int64, bool) {
	x, ok := v.address()
	return int64(x), ok
}

func (v value) stack() (uint32, bool) {
	switch v.kind {
	case isStack:
		return uint32(v.x), true
	case isEmpty, isNone:
		return 0, true
	}
	return 0, false
}

func (m *machine) history() *History {
	if m.streams == nil {
		if k := len(m.histories); k > 0 {
			m.shutBytes += m.histories[k-1].unpackedBytes()
		}
		m.streams, m.pools = map[int64]uint16{}, map[[2]uint64]uint16{}
		m.histories = append(m.histories, &History{})
	}
	return m.histories[len(m.histories)-1]
}

// streamOf returns the index of a stream in the last history.
func (m *machine) streamOf(handle int64) (uint16, bool) {
	hist := m.history()
	return indexOf(m.streams, &hist.Streams, handle)
}

// indexOf returns the index of a value in a list, adding the value if it is new. It fails if the
// list is full.
func indexOf[K comparable](known map[K]uint16, list *[]K, v K) (uint16, bool) {
	id, ok := known[v]
	if !ok {
		if len(*list) > math.MaxUint16 {
			return 0, false
		}
		id = uint16(len(*list))
		known[v] = id
		*list = append(*list, v)
	}
	return id, true
}

// poolOf returns the index of a pool in the last history.
func (m *machine) poolOf(v value) (uint16, bool) {
	hist := m.history()
	if hist.Pools == nil {
		hist.Pools = append(hist.Pools, [2]uint64{})
		m.pools[hist.Pools[0]] = 0
	}
	if v.kind == isNone {
		return 0, true
	}
	if v.kind != isPair {
		return 0, false
	}
	return indexOf(m.pools, &hist.Pools, m.pairs[v.x])
}

// errTooMany is the error for more streams or pools than a history can number.
var errTooMany = fmt.Errorf("more than %d streams or pools, want fewer", math.MaxUint16+1)

func (m *machine) frame(nd *node) (value, error) {
	var f Frame
	for i := 0; i < len(nd.items); i += 2 {
		key, v, ok := nd.items[i], nd.items[i+1], true
		switch m.wordOf(key) {
		case keyFile:
			if ok = v.kind == isText; ok {
				f.File = m.stringOf(v)
			}
		case keyName:
			if ok = v.kind == isText; ok {
				f.Function = m.stringOf(v)
			}
		case keyLine:
			var line uint64
			line, ok = v.address() // PyTorch writes -1, the line of generated code, as 64 bits without sign
			f.Line = int64(line)
		default:
			m.ignore(frameRow, key)
		}
		if !ok {
			return value{}, m.errValue(frameRow, key, v)
		}
	}
	return value{kind: isFrame, x: uint64(m.Frame(f)), n: 1}, nil
}

func (m *machine) block(nd *node, h keySet) (value, error) {
	b := Block{Addr: noAddr}
	var last value
	for i := 0; i < len(nd.items); i += 2 {
		key, v, ok := nd.items[i], nd.items[i+1], true
		switch m.wordOf(key) {
		case keyAddress:
			b.Addr, ok = v.address()
		case keySize:
			b.Size, ok = v.count()
		case keyRequested:
			b.Requested, ok = v.count()
		case keyState:
			b.State, ok = m.state(v)
		case keyFrames:
			b.Stack, ok = v.stack()
		case keyHistory:
			last, ok = m.lastUse(v)
		default:
			m.ignore(blockRow, key)
		}
		if !ok {
			return value{}, m.errValue(blockRow, key, v)
		}
	}
	if !h.all(1<<keyRequested) && b.State != Inactive {
		b.Requested = b.Size
	}
	if last.kind == isDict {
		if err := m.use(&b, m.nodes.ref(last.x), !h.all(1<<keyRequested)); err != nil {
			return value{}, err
		}
	}
	return value{kind: isBlock, x: m.blocks.add(b), n: 1}, nil
}

func (m *machine) state(v value) (BlockState, bool) {
	switch m.wordOf(v) {
	case wordAllocated:
		return ActiveAllocated, true
	case wordPending, wordAwaiting:
		return ActivePendingFree, true
	case wordInactive:
		return Inactive, true
	}
	return 0, false
}

// lastUse returns the first element of a block's history, which files before PyTorch 2.1 have. An
// active block has one element, a free block one for each of its parts.
func (m *machine) lastUse(v value) (value, bool) {
	if v.kind != isList {
		return value{}, v.kind == isEmpty || v.kind == isNone
	}
	use := m.nodes.ref(v.x).items[0]
	return use, use.kind == isDict
}

// use reads the stack of the last use of a block, and its requested bytes if sized is set.
func (m *machine) use(b *Block, nd *node, sized bool) error {
	for i := 0; i < len(nd.items); i += 2 {
		key, v, ok := nd.items[i], nd.items[i+1], true
		switch m.wordOf(key) {
		case keyRealSize:
			var n uint64
			if n, ok = v.count(); sized {
				b.Requested = n
			}
		case keyFrames:
			b.Stack, ok = v.stack()
		}
		if !ok {
			return m.errValue(blockRow, key, v)
		}
	}
	return nil
}

func (m *machine) segment(nd *node, h keySet) (value, error) {
	row := segmentRow{sums: h.all(1<<keyAllocated | 1<<keyActive | 1<<keyRequested)}
	s := &row.seg
	for i := 0; i < len(nd.items); i += 2 {
		key, v, ok := nd.items[i], nd.items[i+1], true
		switch m.wordOf(key) {
		case keyDevice:
			row.device, ok = v.device()
		case keyAddress:
			s.Addr, ok = v.address()
		case keyTotal:
			s.Total, ok = v.count()
		case keyAllocated:
			s.Allocated, ok = v.count()
		case keyActive:
			s.Active, ok = v.count()
		case keyRequested:
			s.Requested, ok = v.count()
		case keyStream:
			s.Stream, ok = v.handle()
		case keyType:
			s.Large, ok = m.wordOf(v) == wordLarge, v.kind == isText
		case keySegmentPool:
			if ok = v.kind == isPair; ok {
				s.Pool = m.pairs[v.x]
			}
		case keyExpandable:
			s.Expandable, ok = v.truth()
		case keyFrames:
			s.Stack, ok = v.stack()
		case keyBlocks:
			row.blocks, ok = v, v.kind == isBlocks || v.kind == isEmpty
		default:
			m.ignore(segmentRowKind, key)
		}
		if !ok {
			return value{}, m.errValue(segmentRowKind, key, v)
		}
	}
	if !h.all(1 << keyAddress) {
		return value{}, m.errMissing(segmentRowKind, keyAddress)
	}
	return value{kind: isSegment, x: m.segments.add(row), n: 1}, nil
}

func (v value) device() (int, bool) {
	x, ok := v.count()
	return int(x), ok && x < maxDevice
}

func (m *machine) annotation(nd *node) (value, error) {
	a := Annotation{Time: NoTime}
	for i := 0; i < len(nd.items); i += 2 {
		key, v, ok := nd.items[i], nd.items[i+1], true
		switch m.wordOf(key) {
		case keyName:
			if ok = v.kind == isText; ok {
				a.Name = m.stringOf(v)
			}
		case keyStage:
			w := m.wordOf(v)
			a.Start, ok = w == wordStart, w == wordStart || w == wordEnd
		case keyDevice:
			a.Device, ok = v.device()
		case keyTime:
			a.Time, ok = v.int()
			ok = ok && a.Time >= 0
		default:
			m.ignore(annotationRow, key)
		}
		if !ok {
			return value{}, m.errValue(annotationRow, key, v)
		}
	}
	return value{kind: isAnnotation, x: m.annotations.add(a), n: 1}, nil
}
