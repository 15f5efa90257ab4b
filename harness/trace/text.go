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
}

// verb is one kind of line.
type verb struct {
	event Event   // what the line stands for before its fields are read
	args  []field // positional, in order
	least int     // how many of args must be there
	keys  []field // key=value, in any order
}

// The fields. Each names itself in messages.
var (
	fieldID = field{"id", func(_ *parser, e *Event, b []byte) (err error) {
		e.ID, err = number("id", b)
		return err
	}}
	fieldSize = field{"size", func(_ *parser, e *Event, b []byte) (err error) {
		e.Size, err = size(b)
		return err
	}}
	fieldAlign = field{"align", func(_ *parser, e *Event, b []byte) (err error) {
		if e.Align, err = size(b); err != nil {
			err = fmt.Errorf("align: %w", err)
		}
		return err
	}}
	fieldStream = field{"stream", func(_ *parser, e *Event, b []byte) error {
		n, err := number("stream", b)
		e.Stream = device.Stream(n)
		return err
	}}
	fieldTag  = field{"tag", func(p *parser, e *Event, b []byte) error { return p.text(e, b) }}
	fieldMark = field{"text", fieldTag.set}
	fieldTime = field{"t", func(_ *parser, e *Event, b []byte) error {
		n, err := number("t", b)
		if err == nil && n > math.MaxInt64 {
			return fmt.Errorf("t %s: want nanoseconds", clip(b))
		}
		e.Time = int64(n)
		return err
	}}
	fieldHint = field{"hint", setHint}
	fieldSite = field{"site", func(_ *parser, e *Event, b []byte) (err error) {
		e.Site, err = parseSite(b)
		return err
	}}
	fieldThread = field{"thread", func(_ *parser, e *Event, b []byte) (err error) {
		e.Thread, err = parseThread(b)
		return err
	}}
	fieldBefore = arg("before")
	fieldCount  = arg("count")
	fieldPool   = arg("pool")
	fieldFaults = arg("faults")
	fieldPrint  = field{"what", setPrint}
	fieldBad    = field{"id", setBad}
	fieldOffset = field{"offset", setOffset}
)

// arg returns a field that is a plain number in Event.Arg.
func arg(name string) field {
	return field{name, func(_ *parser, e *Event, b []byte) (err error) {
		e.Arg, err = number(name, b)
		return err
	}}
}

// hintNames are the words of the hints, by hint.
var hintNames = [...]string{alloc.HintNone: "", alloc.HintLow: "low", alloc.HintHigh: "high"}

func setHint(_ *parser, e *Event, b []byte) error {
	i := slices.Index(hintNames[1:], string(b))
	if i < 0 {
		return fmt.Errorf("hint %s: want low or high", clip(b))
	}
	e.Hint = alloc.Hint(i + 1)
	return nil
}

// printNames are the words of what a Print event asks for, by number.
var printNames = [...]string{PrintStats: "stats", PrintMap: "map", PrintTotals: "totals"}

func setPrint(_ *parser, e *Event, b []byte) error {
	i := slices.Index(printNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("print %s: want %s", clip(b), strings.Join(printNames[:], ", "))
	}
	e.Arg = uint64(i)
	return nil
}

// setBad reads what an illegal free names: null, an address in hexadecimal, or an id.
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
		if e.ID, err = number("id", b); err != nil {
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
	n, err := size(digits)
	e.Size = n
	return err
}

// parseSite reads the hash of a call stack.
func parseSite(b []byte) (uint64, error) {
	if digits, ok := bytes.CutPrefix(b, []byte("0x")); ok && len(digits) <= 16 {
		if n, err := strconv.ParseUint(string(digits), 16, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("site %s: want 0x and 1 to 16 hexadecimal digits", clip(b))
}

// parseThread reads the number of a thread.
func parseThread(b []byte) (uint32, error) {
	n, ok := parseUint(b)
	if !ok || n > math.MaxUint32 {
		return 0, fmt.Errorf("thread %s: want a number from 0 to %d", clip(b), uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

// number reads a decimal number.
func number(name string, b []byte) (uint64, error) {
	n, ok := parseUint(b)
	if !ok {
		return 0, notNumber(name, b)
	}
	return n, nil
}

func notNumber(name string, b []byte) error {
	return fmt.Errorf("%s %s: want a number from 0 to %d", name, clip(b), uint64(math.MaxUint64))
}

// size reads a number of bytes, plain or with a unit.
func size(b []byte) (device.Size, error) {
	if n, ok := parseUint(b); ok {
		return device.Size(n), nil
	}
	const longest = 64 // digits beyond this are no size, and would make a long message
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

// native holds the lines of the text form by their first word. Lines of pools have two.
var native = map[string]*verb{
	"a": {Event{Kind: Alloc}, []field{fieldID, fieldSize}, 2,
		[]field{fieldAlign, fieldStream, fieldHint, fieldBefore, fieldTag, fieldSite, fieldThread, fieldTime}},
	"f": {Event{Kind: Free}, []field{fieldID}, 1, []field{fieldTime}},
	"live": {Event{Kind: LiveAtStart}, []field{fieldID, fieldSize}, 2,
		[]field{fieldAlign, fieldStream, fieldTag, fieldSite, fieldThread, fieldTime}},
	"done": {Event{Kind: Completed}, []field{fieldID}, 1, []field{fieldTime}},
	"use":  {Event{Kind: Use}, []field{fieldID, fieldStream}, 2, []field{fieldTime}},
	"mark": {Event{Kind: Mark}, []field{fieldMark}, 1, []field{fieldTime}},
	"trim": {Event{Kind: Trim}, nil, 0, []field{fieldTime}},

	"frontier": {Event{Kind: Frontier}, []field{fieldCount}, 1, []field{fieldTime}},
	"drain":    {Event{Kind: Drain}, []field{fieldStream}, 1, []field{fieldTime}},
	"poll":     {Event{Kind: Poll}, nil, 0, []field{fieldTime}},

	"pool begin":   {Event{Kind: PoolBegin, Stream: AllStreams}, []field{fieldPool}, 1, []field{fieldStream, fieldTime}},
	"pool end":     {Event{Kind: PoolEnd}, []field{fieldPool}, 1, []field{fieldTime}},
	"pool release": {Event{Kind: PoolRelease}, []field{fieldPool}, 1, []field{fieldTime}},

	"refused": {Event{Kind: Refused}, []field{fieldSize}, 1,
		[]field{fieldAlign, fieldStream, fieldTag, fieldSite, fieldThread, fieldTime}},
	"badfree": {Event{Kind: BadFree}, []field{fieldBad, fieldOffset}, 1, []field{fieldTime}},
	"fault":   {Event{Kind: Fault, Arg: 1}, []field{fieldFaults}, 0, []field{fieldTime}},
	"clear":   {Event{Kind: ClearStats}, nil, 0, []field{fieldTime}},
	"print":   {Event{Kind: Print}, []field{fieldPrint}, 1, []field{fieldTime}},
}

// poolWord is the one word that says what a line is only together with the next.
const poolWord = "pool"

// event reads one line that is neither blank nor a comment.
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
	e := &p.ev // not a local one: the fields' functions would move it to the heap
	*e = v.event
	e.Time = NoTime
	if err := p.fields(v, e, word, rest); err != nil {
		return err
	}
	if p.loose && (e.Kind == Free || e.Kind == Use) && !p.b.Live(e.ID) {
		return nil
	}
	return p.b.Add(*e)
}

// unknown says which words a line may begin with.
func (p *parser) unknown(word []byte) error {
	var words []string
	for w := range p.verbs {
		words = append(words, w)
	}
	slices.Sort(words)
	return fmt.Errorf("unknown operation %s: want one of %s", clip(word), strings.Join(words, ", "))
}

// fields reads the positional arguments and then the keys of a line.
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

// names lists the names of fields for a message.
func names(fields []field) string {
	var s []string
	for _, f := range fields {
		s = append(s, f.name)
	}
	return strings.Join(s, ", ")
}

// token returns the first token of a line and what follows it; nil if there is none.
// Tokens are parted by blanks, quoted text is one token or the end of one, and a token
// that begins with '#' is a comment up to the end of the line.
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

// quoted returns the length of the quoted text that line begins with, up to the end of
// the line if the closing quote is missing.
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
