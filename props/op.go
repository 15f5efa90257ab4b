package props

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Kind is the kind of call that an [Op] makes.
type Kind uint8

// The kinds.
const (
	OpAlloc       Kind = iota // request a block
	OpFree                    // free a live block
	OpDoubleFree              // free a block that was freed before
	OpInterior                // free an address inside a live block
	OpForeign                 // free an address that no block ever had
	OpNull                    // free address zero
	OpTrim                    // release cached regions
	OpFrontier                // raise the safe frontier
	OpClear                   // clear the statistics
	OpFault                   // let the next device calls fail
	OpUse                     // record a stream for a live block
	OpDrain                   // finish the work queued on a stream
	OpPoll                    // poll for deferred frees that have finished
	OpPoolBegin               // redirect requests into a private pool
	OpPoolEnd                 // end the redirection into a pool
	OpPoolRelease             // release a pool
	OpConf                    // change the settings
	opClose                   // close the strategy; no sequence has it
	numKinds
)

// kinds holds the words of each kind in a sequence, its event in a trace and the method of a
// strategy that it calls.
var kinds = [numKinds]struct {
	words  string
	event  trace.Kind
	method string
}{
	OpAlloc:       {"a", trace.Alloc, "Alloc"},
	OpFree:        {"f", trace.Free, "Free"},
	OpDoubleFree:  {"badfree freed", trace.BadFree, "Free"},
	OpInterior:    {"badfree inside", trace.BadFree, "Free"},
	OpForeign:     {"badfree foreign", trace.BadFree, "Free"},
	OpNull:        {"badfree null", trace.BadFree, "Free"},
	OpTrim:        {"trim", trace.Trim, "Trim"},
	OpFrontier:    {"frontier", trace.Frontier, "SetFrontier"},
	OpClear:       {"clear", trace.ClearStats, "ClearStats"},
	OpFault:       {"fault", trace.Fault, ""},
	OpUse:         {"use", trace.Use, "RecordStream"},
	OpDrain:       {"drain", trace.Drain, ""},
	OpPoll:        {"poll", trace.Poll, "Poll"},
	OpPoolBegin:   {"pool begin", trace.PoolBegin, "BeginPool"},
	OpPoolEnd:     {"pool end", trace.PoolEnd, "EndPool"},
	OpPoolRelease: {"pool release", trace.PoolRelease, "ReleasePool"},
	OpConf:        {"conf", trace.Conf, "Configure"},
	opClose:       {words: "close", method: "Close"},
}

// Op is one call. Which block it names depends on the blocks live when it is run, so that
// every sequence of operations is legal and stays legal when some are removed. An operation
// without a block to act on is skipped.
type Op struct {
	Kind   Kind          // which call
	Size   device.Size   // OpAlloc: bytes
	Align  device.Size   // OpAlloc: bytes; 0 for any
	Stream device.Stream // OpAlloc, OpUse, OpDrain; OpPoolBegin, where it may be power.AllStreams
	Hint   alloc.Hint    // OpAlloc
	Before uint64        // OpAlloc: Request.Before
	Pool   alloc.PoolID  // OpPoolBegin, OpPoolEnd, OpPoolRelease
	Conf   string        // OpConf: the settings
	Pick   uint64        // which block, how far inside, how far the frontier, how many faults
}

func (o Op) request(id uint64) alloc.Request {
	return alloc.Request{
		Size: o.Size, Align: o.Align, Stream: o.Stream, Hint: o.Hint, Before: o.Before, Tag: id, ID: id,
	}
}

// numbers returns the fields that follow the words of the operation, in order.
func (o *Op) numbers() []*uint64 {
	switch o.Kind {
	case OpAlloc:
		return []*uint64{(*uint64)(&o.Size)}
	case OpFree, OpDoubleFree, OpInterior, OpForeign, OpFrontier, OpFault:
		return []*uint64{&o.Pick}
	case OpUse:
		return []*uint64{&o.Pick, (*uint64)(&o.Stream)}
	case OpDrain:
		return []*uint64{(*uint64)(&o.Stream)}
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		return []*uint64{(*uint64)(&o.Pool)}
	}
	return nil
}

// option is a field that is written as key=value unless it has the value absent.
type option struct {
	key    string
	value  *uint64
	absent uint64
}

var hintNames = [...]string{"none", "low", "high"}

// options returns the optional fields of the operation. The hint is handed over as a number.
func (o *Op) options(hint *uint64) []option {
	switch o.Kind {
	case OpAlloc:
		return []option{
			{"align", (*uint64)(&o.Align), 0}, {"stream", (*uint64)(&o.Stream), 0},
			{"hint", hint, uint64(alloc.HintNone)}, {"before", &o.Before, 0},
		}
	case OpPoolBegin:
		return []option{{"stream", (*uint64)(&o.Stream), uint64(power.AllStreams)}}
	}
	return nil
}

// String returns the operation as a line of a trace, with the pick where a trace has the
// id of a block. The exact line depends on the blocks live at that moment; see [Failure].
func (o Op) String() string {
	if o.Kind >= numKinds {
		return "invalid"
	}
	text := []byte(kinds[o.Kind].words)
	if o.Kind == OpConf {
		text = strconv.AppendQuote(append(text, ' '), o.Conf)
	}
	for _, n := range o.numbers() {
		text = fmt.Appendf(text, " %d", *n)
	}
	hint := uint64(o.Hint)
	for _, f := range o.options(&hint) {
		switch {
		case *f.value == f.absent:
		case f.key != "hint":
			text = fmt.Appendf(text, " %s=%d", f.key, *f.value)
		case int(o.Hint) < len(hintNames):
			text = append(text, " hint="+hintNames[o.Hint]...)
		}
	}
	return string(text)
}

// Sequence is a run of operations.
type Sequence []Op

// String returns the length of the sequence. The generator's library formats every sequence
// that it tries, so the long form is left to [Sequence.Lines].
func (s Sequence) String() string { return fmt.Sprintf("%d operations", len(s)) }

// Lines returns the operations, one a line.
func (s Sequence) Lines() string {
	var b strings.Builder
	for _, o := range s {
		b.WriteString(o.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// ParseSequence reads operations, one a line, as [Sequence.Lines] writes them. It returns the
// operations that it understands, and an error for the first line that it does not: a fuzzer's
// input is used as far as it goes.
func ParseSequence(text string) (s Sequence, first error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		o, err := parseOp(words)
		if err == nil {
			s = append(s, o)
		} else if first == nil {
			first = fmt.Errorf("operation %q: %w", strings.TrimSpace(line), err)
		}
	}
	return s, first
}

func parseOp(words []string) (o Op, err error) {
	var known []string
	for ; o.Kind < opClose; o.Kind++ {
		name := strings.Fields(kinds[o.Kind].words)
		if len(words) >= len(name) && slices.Equal(words[:len(name)], name) {
			words = words[len(name):]
			break
		}
		known = append(known, kinds[o.Kind].words)
	}
	if o.Kind == opClose {
		return o, fmt.Errorf("want one of %s", strings.Join(known, ", "))
	}
	if o.Kind == OpConf {
		o.Conf, err = strconv.Unquote(strings.Join(words, " "))
		return o, err
	}
	for _, n := range o.numbers() {
		if len(words) == 0 {
			return o, fmt.Errorf("a number is missing")
		}
		if *n, err = strconv.ParseUint(words[0], 10, 64); err != nil {
			return o, err
		}
		words = words[1:]
	}
	return o, o.parseOptions(words)
}

// parseOptions reads the optional fields. Words behind an operation without options are ignored.
func (o *Op) parseOptions(words []string) (err error) {
	var hint uint64
	options := o.options(&hint)
	if options == nil {
		return nil
	}
	for _, f := range options {
		*f.value = f.absent
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		i := slices.IndexFunc(options, func(f option) bool { return f.key == key })
		h := slices.Index(hintNames[:], value)
		switch {
		case i < 0:
			return fmt.Errorf("option %q: %s has none of this name", key, kinds[o.Kind].words)
		case key != "hint":
			if *options[i].value, err = strconv.ParseUint(value, 10, 64); err != nil {
				return fmt.Errorf("option %s: %w", key, err)
			}
		case h < 0:
			return fmt.Errorf("hint %q: want low or high", value)
		default:
			hint = uint64(h)
		}
	}
	o.Hint = alloc.Hint(hint)
	return nil
}
