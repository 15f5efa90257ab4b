package formats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// call is a line of a log that names blocks by address.
type call struct {
	kind   trace.Kind // Alloc, Free, Refused or Mark
	tag    uint32     // index in texts
	thread uint32     // counted from 1; 0 if unknown
	stream device.Stream
	addr   uint64
	size   uint64 // bytes; 0 for a free of unknown size
	time   int64  // nanoseconds of any clock
	line   int    // of the file; 0 if unknown
}

// log is the history of one part of a file: of a device or an allocator.
type log struct {
	part string
	host bool // host memory, which is selected only by name or if there is no other
	lifetimes
	// unseen is the memory that was live throughout without a call, in bytes.
	unseen uint64
	// lost is the number of missing lines, derived from running totals.
	lost int
	// limit is the most bytes that the allocator may hold; 0: unknown.
	limit uint64
}

// texts holds the tags of a file, each once.
type texts struct {
	memory  *budget.Budget
	list    []string
	indexes map[string]uint32
}

// index returns the index of a text; 0 is the empty text.
func (x *texts) index(s string) (uint32, error) {
	if s == "" {
		return 0, nil
	}
	if x.indexes == nil {
		x.indexes, x.list = map[string]uint32{}, []string{""}
	}
	i, ok := x.indexes[s]
	if !ok {
		i = uint32(len(x.list))
		if err := x.memory.Take(int64(len(s))); err != nil {
			return 0, err
		}
		if err := budget.Put(x.memory, x.indexes, s, i); err != nil {
			return 0, err
		}
		var err error
		if x.list, err = budget.Append(x.memory, x.list, s); err != nil {
			return 0, err
		}
	}
	return i, nil
}

// logs are the parts of a file in order of appearance.
type logs struct {
	memory *budget.Budget
	spans  bool // addresses are compared
	list   []*log
	last   *log
}

// logs returns the empty logs of a file.
func (in *Input) logs() logs { return logs{memory: in.budget, spans: in.Doubt != nil} }

// part returns the log of a part, adding it if it is new.
func (l *logs) part(name string, host bool) (*log, error) {
	if l.last != nil && l.last.part == name {
		return l.last, nil
	}
	i := slices.IndexFunc(l.list, func(p *log) bool { return p.part == name })
	if i < 0 {
		i = len(l.list)
		if i == maxParts {
			return nil, errParts
		}
		if err := l.memory.Take(int64(len(name))); err != nil {
			return nil, err
		}
		l.list = append(l.list, &log{part: strings.Clone(name), host: host, lifetimes: lifetimes{memory: l.memory}})
		if l.spans {
			l.list[i].spans = new(trace.Spans)
		}
	}
	l.last = l.list[i]
	return l.last, nil
}

// maxParts is the maximum number of devices or allocators in a file.
const maxParts = 4096

var errParts = fmt.Errorf("more than %d devices or allocators", maxParts)

// part is one of several traces in a file. An idle part is selected only by name, or if all parts
// are idle.
type part struct {
	trace.Part
	idle bool
}

// choose returns the index of the selected part: by name, or the only active part, or the only
// part. It also returns the names of the others.
func choose(parts []part, want string) (chosen int, rest []string, err error) {
	chosen = slices.IndexFunc(parts, func(p part) bool { return p.Name == want })
	if want == "" {
		devices := len(parts)
		for _, p := range parts {
			if p.idle {
				devices--
			}
		}
		chosen = slices.IndexFunc(parts, func(p part) bool { return !p.idle || devices == 0 })
		if devices > 1 || devices == 0 && len(parts) > 1 {
			return 0, nil, &trace.PartsError{Parts: listed(parts)}
		}
	}
	if chosen < 0 {
		return 0, nil, fmt.Errorf("has no part %q: want %s", want, trace.DescribeParts(listed(parts)))
	}
	for i, p := range parts {
		if i != chosen {
			rest = append(rest, p.Name)
		}
	}
	return chosen, rest, nil
}

// listed returns the parts in their exported form.
func listed(parts []part) []trace.Part {
	list := make([]trace.Part, len(parts))
	for i, p := range parts {
		list[i] = p.Part
	}
	return list
}

// leftOut returns header pairs with the selected part and the others.
func leftOut(chosen string, rest []string) []trace.Pair {
	const most = 64
	pairs := []trace.Pair{{Key: "part", Value: chosen}}
	if len(rest) > 0 {
		pairs = append(pairs, trace.Pair{Key: "parts_left_out", Value: strings.Join(rest[:min(len(rest), most)], ", ")})
	}
	return pairs
}

// trace returns the trace of the selected part. The time of its first call becomes 0.
func (l *logs) trace(in *Input, h trace.Header, x *texts, none error) (*trace.Trace, error) {
	if len(l.list) == 0 {
		return nil, none
	}
	parts := make([]part, len(l.list))
	for i, p := range l.list {
		parts[i] = part{trace.Part{Name: p.part, Events: p.calls}, p.host}
	}
	chosen, rest, err := choose(parts, in.Part)
	if err != nil {
		return nil, err
	}
	p := l.list[chosen]
	h.Meta = append(h.Meta, leftOut(p.part, rest)...)
	if p.limit != 0 {
		h.Meta = append(h.Meta, trace.Pair{Key: trace.LimitKey, Value: strconv.FormatUint(p.limit, 10)})
	}
	p.report(in)
	return p.trace(h, x)
}
