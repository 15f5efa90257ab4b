package props

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// ParseSequence reads operations, one a line, as [Sequence.Lines] writes them. It returns
// those that it understands, and an error for the first line that it does not: what was
// pasted from a failure should be understood as a whole, what a fuzzer made up is used as
// far as it goes.
func ParseSequence(text string) (s Sequence, first error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		o, err := parseOp(words)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("operation %q: %w", strings.TrimSpace(line), err)
			}
			continue
		}
		s = append(s, o)
	}
	return s, first
}

// wrong are the words behind badfree, by kind.
var wrong = map[string]Kind{"freed": OpDoubleFree, "inside": OpInterior, "foreign": OpForeign, "null": OpNull}

// parseOp reads one operation.
func parseOp(words []string) (o Op, err error) {
	switch words[0] {
	case "a":
		return parseAlloc(words[1:])
	case "f":
		o.Kind = OpFree
	case "badfree":
		kind, ok := Kind(0), false
		if len(words) > 1 {
			kind, ok = wrong[words[1]]
		}
		if !ok {
			return o, fmt.Errorf("want badfree and one of freed, inside, foreign, null")
		}
		o.Kind, words = kind, words[1:]
	case "trim":
		o.Kind = OpTrim
	case "frontier":
		o.Kind = OpFrontier
	case "clear":
		o.Kind = OpClear
	case "fault":
		o.Kind = OpFault
	case "use", "drain", "poll":
		return parseStream(words)
	case "pool":
		return parsePool(words[1:])
	default:
		return o, fmt.Errorf("want one of a, f, badfree, trim, frontier, clear, fault, use, drain, poll, pool")
	}
	if o.Kind == OpNull || o.Kind == OpTrim || o.Kind == OpClear {
		return o, nil
	}
	if len(words) < 2 {
		return o, fmt.Errorf("a number is missing")
	}
	o.Pick, err = strconv.ParseUint(words[1], 10, 64)
	return o, err
}

// parseStream reads an operation of streams.
func parseStream(words []string) (o Op, err error) {
	numbers := words[1:]
	switch words[0] {
	case "use":
		o.Kind = OpUse
		if len(numbers) < 2 {
			return o, fmt.Errorf("want use, a block and a stream")
		}
		if o.Pick, err = strconv.ParseUint(numbers[0], 10, 64); err != nil {
			return o, err
		}
		numbers = numbers[1:]
	case "drain":
		o.Kind = OpDrain
	case "poll":
		return Op{Kind: OpPoll}, nil
	}
	if len(numbers) == 0 {
		return o, fmt.Errorf("the stream is missing")
	}
	n, err := strconv.ParseUint(numbers[0], 10, 64)
	o.Stream = device.Stream(n)
	return o, err
}

// parsePool reads an operation of private pools.
func parsePool(words []string) (o Op, err error) {
	ok := false
	for _, k := range [...]Kind{OpPoolBegin, OpPoolEnd, OpPoolRelease} {
		if len(words) > 1 && words[0] == poolWords[k] {
			o.Kind, ok = k, true
		}
	}
	if !ok {
		return o, fmt.Errorf("want pool, one of begin, end, release, and a pool")
	}
	n, err := strconv.ParseUint(words[1], 10, 64)
	if o.Pool = alloc.PoolID(n); err != nil || o.Kind != OpPoolBegin {
		return o, err
	}
	o.Stream = alloc.AllStreams
	for _, w := range words[2:] {
		value, ok := strings.CutPrefix(w, "stream=")
		if !ok {
			return o, fmt.Errorf("option %q: want stream", w)
		}
		if n, err = strconv.ParseUint(value, 10, 64); err != nil {
			return o, err
		}
		o.Stream = device.Stream(n)
	}
	return o, nil
}

// parseAlloc reads the size and the options of an allocation.
func parseAlloc(words []string) (Op, error) {
	if len(words) == 0 {
		return Op{}, fmt.Errorf("the size is missing")
	}
	n, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return Op{}, err
	}
	o := Op{Kind: OpAlloc, Size: device.Size(n)}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "hint" {
			h := slices.Index(hintNames[:], value)
			if h < 0 {
				return o, fmt.Errorf("hint %q: want low or high", value)
			}
			o.Hint = alloc.Hint(h)
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return o, err
		}
		switch key {
		case "align":
			o.Align = device.Size(n)
		case "stream":
			o.Stream = device.Stream(n)
		case "before":
			o.Before = n
		default:
			return o, fmt.Errorf("option %q: want align, stream, hint or before", key)
		}
	}
	return o, nil
}
