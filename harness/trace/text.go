package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// field is one piece of a line: a positional argument, or a key with its value.
type field struct {
	name string
	set  func(*parser, *Event, []byte) error
	get  func(e *Event, tag string) uint64           // the value as a number; a default is not written
	show func(b []byte, e *Event, tag string) []byte // appends the value to a line; nil: as a decimal number
}

// verb describes one kind of line.
type verb struct {
	event Event   // initial event of the line
	args  []field // positional, in order
	least int     // number of required args
	keys  []field // key=value, in any order
}

// The fields.
var (
	fieldID   = number("id", func(e *Event) *uint64 { return &e.ID })
	fieldSize = field{name: "size", set: func(_ *parser, e *Event, b []byte) (err error) {
		e.Size, err = parseSize(b)
		return err
	}, get: func(e *Event, _ string) uint64 { return uint64(e.Size) }}
	fieldAlign = field{name: "align", set: func(_ *parser, e *Event, b []byte) (err error) {
		if e.Align, err = parseSize(b); err != nil {
			err = fmt.Errorf("align: %w", err)
		}
		return err
	}, get: func(e *Event, _ string) uint64 { return uint64(e.Align) }}
	fieldStream = number("stream", func(e *Event) *uint64 { return (*uint64)(&e.Stream) })
	fieldTag    = field{"tag", (*parser).text, func(_ *Event, tag string) uint64 { return uint64(len(tag)) }, showText}
	fieldMark   = field{"text", fieldTag.set, fieldTag.get, showText}
	fieldConf   = field{"settings", fieldTag.set, fieldTag.get, showText}
	fieldPooled = field{"options", fieldTag.set, fieldTag.get, showText}
	fieldTime   = field{name: "t", set: func(_ *parser, e *Event, b []byte) error {
		n, err := parseNumber("t", b)
		if err == nil && n > math.MaxInt64 {
			return fmt.Errorf("t %s: want nanoseconds", clip(b))
		}
		e.Time = int64(n)
		return err
	}, get: func(e *Event, _ string) uint64 { return uint64(e.Time) }}
	fieldHint = field{"hint", setHint, getHint, func(b []byte, e *Event, _ string) []byte {
		return append(b, hintNames[e.Hint]...)
	}}
	fieldSite = field{"site", func(_ *parser, e *Event, b []byte) (err error) {
		e.Site, err = parseSite(b)
		return err
	}, func(e *Event, _ string) uint64 { return e.Site }, func(b []byte, e *Event, _ string) []byte {
		return appendHex(b, e.Site)
	}}
	fieldThread = field{name: "thread", set: func(_ *parser, e *Event, b []byte) (err error) {
		e.Thread, err = parseThread(b)
		return err
	}, get: func(e *Event, _ string) uint64 { return uint64(e.Thread) }}
	fieldLife = field{"life", func(_ *parser, e *Event, b []byte) (err error) {
		e.Life, err = parseLife(b)
		return err
	}, func(e *Event, _ string) uint64 { return uint64(e.Life) }, func(b []byte, e *Event, _ string) []byte {
		return append(b, e.Life.String()...)
	}}
	fieldBefore = number("before", argOf)
	fieldCount  = number("count", argOf)
	fieldPool   = number("pool", argOf)
	fieldFaults = number("faults", argOf)
	fieldPrint  = field{"what", setPrint, fieldCount.get, func(b []byte, e *Event, _ string) []byte {
		return append(b, printNames[e.Arg]...)
	}}
	fieldBad    = field{"id", setBad, fieldID.get, showBad}
	fieldOffset = field{"offset", setOffset, getOffset, func(b []byte, e *Event, _ string) []byte {
		return strconv.AppendUint(append(b, '+'), uint64(e.Size), 10)
	}}
)

func argOf(e *Event) *uint64 { return &e.Arg }

// number returns a field for a plain number of an event.
func number(name string, of func(*Event) *uint64) field {
	return field{name: name, set: func(_ *parser, e *Event, b []byte) (err error) {
		*of(e), err = parseNumber(name, b)
		return err
	}, get: func(e *Event, _ string) uint64 { return *of(e) }}
}

// hintNames are the names of the hints.
var hintNames = [...]string{alloc.HintNone: "", alloc.HintLow: "low", alloc.HintHigh: "high"}

func setHint(_ *parser, e *Event, b []byte) error {
	i := slices.Index(hintNames[1:], string(b))
	if i < 0 {
		return fmt.Errorf("hint %s: want low or high", clip(b))
	}
	e.Hint = alloc.Hint(i + 1)
	return nil
}

// getHint returns 0 for a hint without a name.
func getHint(e *Event, _ string) uint64 {
	if int(e.Hint) < len(hintNames) {
		return uint64(e.Hint)
	}
	return uint64(alloc.HintNone)
}

// printNames are the names of the values of a Print event.
var printNames = [...]string{PrintStats: "stats", PrintMap: "map", PrintTotals: "totals"}

func setPrint(_ *parser, e *Event, b []byte) error {
	i := slices.Index(printNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("print %s: want %s", clip(b), strings.Join(printNames[:], ", "))
	}
	e.Arg = uint64(i)
	return nil
}

// setBad parses the target of an illegal free: null, a hexadecimal address, or an id.
func setBad(_ *parser, e *Event, b []byte) (err error) {
	hex, isAddr := bytes.CutPrefix(b, []byte("0x"))
	switch {
	case string(b) == "null":
		e.Slot = NoSlot
	case isAddr && len(hex) <= 16:
		e.Slot = NoSlot
		if e.Arg, err = strconv.ParseUint(string(hex), 16, 64); err == nil {
			return nil
		}
		fallthrough
	default:
		if e.ID, err = parseNumber("id", b); err != nil {
			return fmt.Errorf("badfree %s: want an id, an address such as 0x7f0000000000, or null", clip(b))
		}
	}
	return nil
}

func setOffset(_ *parser, e *Event, b []byte) error {
	digits, ok := bytes.CutPrefix(b, []byte("+"))
	if !ok {
		return fmt.Errorf("offset %s: want + and a number of bytes", clip(b))
	}
	if e.Slot == NoSlot {
		return errors.New("an offset goes with an id only")
	}
	n, err := parseSize(digits)
	e.Size = n
	return err
}

// getOffset returns 0 for a free of an address, which has no offset.
func getOffset(e *Event, _ string) uint64 {
	if e.Slot == NoSlot {
		return 0
	}
	return uint64(e.Size)
}

func parseSite(b []byte) (uint64, error) {
	if digits, ok := bytes.CutPrefix(b, []byte("0x")); ok && len(digits) <= 16 {
		if n, err := strconv.ParseUint(string(digits), 16, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("site %s: want 0x and 1 to 16 hexadecimal digits", clip(b))
}

func parseThread(b []byte) (uint32, error) {
	n, ok := parseUint(b)
	if !ok || n > math.MaxUint32 {
		return 0, fmt.Errorf("thread %s: want a number from 0 to %d", clip(b), uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

// parseLife reads an expected lifetime.
func parseLife(b []byte) (alloc.Lifetime, error) {
	for l := alloc.LifeMark; l <= alloc.LifeRun; l++ {
		if string(b) == l.String() {
			return l, nil
		}
	}
	return 0, fmt.Errorf("life %s: want mark, step or run", clip(b))
}

func parseNumber(name string, b []byte) (uint64, error) {
	n, ok := parseUint(b)
	if !ok {
		return 0, notNumber(name, b)
	}
	return n, nil
}

func notNumber(name string, b []byte) error {
	return fmt.Errorf("%s %s: want a number from 0 to %d", name, clip(b), uint64(math.MaxUint64))
}

// parseSize reads a number of bytes, plain or with a unit.
func parseSize(b []byte) (device.Size, error) {
	if n, ok := parseUint(b); ok {
		return device.Size(n), nil
	}
	const longest = 64 // longer texts are not sizes, and would make a long message
	if len(b) > longest {
		return 0, fmt.Errorf("size %s: want bytes", clip(b))
	}
	return device.ParseSize(string(b))
}

// text reads a tag, bare or quoted.
func (p *parser) text(e *Event, b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		s, err := strconv.Unquote(string(b))
		if err != nil {
			return fmt.Errorf("text %s: not a quoted text", clip(b))
		}
		b = []byte(s)
	} else if bytes.IndexByte(b, '"') >= 0 {
		return fmt.Errorf("text %s: a text with quotes must be quoted as a whole", clip(b))
	}
	e.Tag = p.b.intern(b)
	return nil
}

// native holds the verbs of the text form by their word. Those of pools have two words.
var native = map[string]*verb{
	"a": {Event{Kind: Alloc}, []field{fieldID, fieldSize}, 2,
		[]field{fieldAlign, fieldStream, fieldHint, fieldBefore, fieldTag, fieldSite, fieldThread, fieldLife, fieldTime}},
	"f": {Event{Kind: Free}, []field{fieldID}, 1, []field{fieldTime}},
	"live": {Event{Kind: LiveAtStart}, []field{fieldID, fieldSize}, 2,
		[]field{fieldAlign, fieldStream, fieldTag, fieldSite, fieldThread, fieldLife, fieldTime}},
	"done": {Event{Kind: Completed}, []field{fieldID}, 1, []field{fieldTime}},
	"use":  {Event{Kind: Use}, []field{fieldID, fieldStream}, 2, []field{fieldTime}},
	"mark": {Event{Kind: Mark}, []field{fieldMark}, 1, []field{fieldTime}},
	"conf": {Event{Kind: Conf}, []field{fieldConf}, 1, []field{fieldTime}},
	"trim": {Event{Kind: Trim}, nil, 0, []field{fieldTime}},

	"pause":  {Event{Kind: Pause}, []field{fieldTag}, 0, []field{fieldTime}},
	"resume": {Event{Kind: Resume}, []field{fieldTag}, 0, []field{fieldTime}},

	"frontier": {Event{Kind: Frontier}, []field{fieldCount}, 1, []field{fieldTime}},
	"drain":    {Event{Kind: Drain}, []field{fieldStream}, 1, []field{fieldTime}},
	"poll":     {Event{Kind: Poll}, nil, 0, []field{fieldTime}},

	"pool begin": {Event{Kind: PoolBegin, Stream: AllStreams}, []field{fieldPool}, 1,
		[]field{fieldStream, fieldPooled, fieldTime}},
	"pool end":     {Event{Kind: PoolEnd}, []field{fieldPool}, 1, []field{fieldTime}},
	"pool release": {Event{Kind: PoolRelease}, []field{fieldPool}, 1, []field{fieldTime}},

	"refused": {Event{Kind: Refused}, []field{fieldSize}, 1,
		[]field{fieldAlign, fieldStream, fieldTag, fieldSite, fieldThread, fieldLife, fieldTime}},
	"badfree": {Event{Kind: BadFree}, []field{fieldBad, fieldOffset}, 1, []field{fieldTime}},
	"fault":   {Event{Kind: Fault, Arg: 1}, []field{fieldFaults}, 0, []field{fieldTime}},
	"clear":   {Event{Kind: ClearStats}, nil, 0, []field{fieldTime}},
	"print":   {Event{Kind: Print}, []field{fieldPrint}, 1, []field{fieldTime}},
}

// nativeWords are the words of the text form by kind.
var nativeWords = func() (words [numKinds]string) {
	for word, v := range native {
		words[v.event.Kind] = word
		v.event.Time = NoTime
	}
	return words
}()

// poolWord is the word that needs a second one to identify the line.
const poolWord = "pool"

// event parses a line that is neither blank nor a comment.
func (p *parser) event(line []byte) error {
	word, rest := token(line)
	if string(word) == poolWord {
		var second []byte
		second, rest = token(rest)
		word = []byte(poolWord + " " + string(second))
	}
	v := p.verbs[string(word)]
	if v == nil {
		return p.unknown(word)
	}
	e := &p.ev // a local variable would escape to the heap through the fields' functions
	*e = v.event
	e.Time = NoTime
	if err := p.fields(v, e, word, rest); err != nil {
		return err
	}
	if p.loose && (e.Kind == Free || e.Kind == Use) && !p.b.Live(e.ID) {
		return nil
	}
	return p.add(*e)
}

// add adds the event of the current line.
func (p *parser) add(e Event) error {
	if p.lines || e.Kind == Conf {
		if err := p.b.memory.Take(placeBytes); err != nil {
			return err
		}
		p.places().events[len(p.b.trace.Events)] = p.src.num
	}
	return p.b.Add(e)
}

// placeBytes is more than a place takes.
const placeBytes = 64

func (p *parser) places() *places {
	t := &p.b.trace
	if t.places == nil {
		t.places = &places{file: p.src.name, events: map[int]int{}}
	}
	return t.places
}

// unknown returns the error for an unknown first word.
func (p *parser) unknown(word []byte) error {
	var words []string
	for w := range p.verbs {
		words = append(words, w)
	}
	slices.Sort(words)
	return fmt.Errorf("unknown operation %s: want one of %s", clip(word), strings.Join(words, ", "))
}

// fields parses the positional arguments and then the keys of a line.
func (p *parser) fields(v *verb, e *Event, word, rest []byte) error {
	args := 0
	var seen uint
	for {
		var tok []byte
		if tok, rest = token(rest); tok == nil {
			break
		}
		if i, value := v.key(tok); i >= 0 {
			if seen&(1<<i) != 0 {
				return fmt.Errorf("%s is given twice", v.keys[i].name)
			}
			seen |= 1 << i
			if err := v.keys[i].set(p, e, value); err != nil {
				return err
			}
			continue
		}
		if key, _, ok := bytes.Cut(tok, []byte("=")); ok && isKey(string(key)) && len(v.keys) > 0 {
			return fmt.Errorf("unknown key %s: %s knows %s", clip(key), word, names(v.keys))
		}
		if args == len(v.args) || seen != 0 {
			return fmt.Errorf("unexpected %s behind %s", clip(tok), clip(word))
		}
		if err := v.args[args].set(p, e, tok); err != nil {
			return err
		}
		args++
	}
	if args < v.least {
		return fmt.Errorf("%s lacks its %s", word, v.args[args].name)
	}
	return nil
}

// key returns the index of the key in a token of the form key=value, and the value.
func (v *verb) key(tok []byte) (int, []byte) {
	for i := range v.keys {
		name := v.keys[i].name
		if len(tok) > len(name) && tok[len(name)] == '=' && string(tok[:len(name)]) == name {
			return i, tok[len(name)+1:]
		}
	}
	return -1, nil
}

func names(fields []field) string {
	var s []string
	for _, f := range fields {
		s = append(s, f.name)
	}
	return strings.Join(s, ", ")
}

// token returns the first token of a line and the rest, or nil. Blanks separate
// tokens. Quoted text is one token or the end of one. A token that begins with '#' starts a comment
// up to the end of the line.
func token(line []byte) (tok, rest []byte) {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	if line = line[i:]; len(line) == 0 || line[0] == '#' {
		return nil, nil
	}
	for i = 0; i < len(line); i++ {
		switch line[i] {
		case ' ', '\t':
			return line[:i], line[i:]
		case '"':
			if i == 0 || line[i-1] == '=' {
				end := i + quoted(line[i:])
				return line[:end], line[end:]
			}
		}
	}
	return line, nil
}

// quoted returns the length of the quoted text at the beginning of a line, or the whole length if
// the closing quote is missing.
func quoted(line []byte) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line)
}
