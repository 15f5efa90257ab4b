package formats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// call is one line of a log that names blocks by their address.
type call struct {
	kind   trace.Kind // Alloc, Free, Refused or Mark
	tag    uint32     // index into texts
	thread uint32     // counted from 1; 0 if the log does not tell
	stream device.Stream
	addr   uint64
	size   uint64 // bytes; of a free 0 if the log does not tell
	time   int64  // nanoseconds on any clock
}

// log is what happened in one part of a file: on a device, or in an allocator.
type log struct {
	part string
	host bool // memory of the host, which is not what people ask about
	book
	// unseen is what was live all the time without being mentioned, in bytes.
	unseen uint64
	// lost counts the lines that are missing, as running totals tell.
	lost int
}

// texts are the tags of a file, each once.
type texts struct {
	memory *budget.Budget
	list   []string
	by     map[string]uint32
}

// index returns the index of a text; 0 is the empty one.
func (x *texts) index(s string) (uint32, error) {
	if s == "" {
		return 0, nil
	}
	if x.by == nil {
		x.by, x.list = map[string]uint32{}, []string{""}
	}
	i, ok := x.by[s]
	if !ok {
		i = uint32(len(x.list))
		if err := x.memory.Take(int64(len(s))); err != nil {
			return 0, err
		}
		if err := budget.Put(x.memory, x.by, s, i); err != nil {
			return 0, err
		}
		var err error
		if x.list, err = budget.Append(x.memory, x.list, s); err != nil {
			return 0, err
		}
	}
	return i, nil
}

// logs are the parts of a file in the order in which they appear.
type logs struct {
	memory *budget.Budget
	list   []*log
	last   *log
}

// part returns the log of a part, a new one if there was none.
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
		l.list = append(l.list, &log{part: strings.Clone(name), host: host, book: book{memory: l.memory}})
	}
	l.last = l.list[i]
	return l.last, nil
}

// maxParts bounds the devices or allocators of one file.
const maxParts = 4096

// errParts is the error about a file that has more.
var errParts = fmt.Errorf("more than %d devices or allocators", maxParts)

// part is one of several traces in a file. A part that is idle is taken only by its name, or if all
// are.
type part struct {
	trace.Part
	idle bool
}

// choose returns the index of the part that is asked for: by its name, or the only one that is not
// idle, or the only one at all. It also names those that are left out.
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

// listed returns the parts as people see them.
func listed(parts []part) []trace.Part {
	list := make([]trace.Part, len(parts))
	for i, p := range parts {
		list[i] = p.Part
	}
	return list
}

// leftOut says which part a trace is and which ones it is not.
func leftOut(chosen string, rest []string) []trace.Pair {
	const most = 64
	pairs := []trace.Pair{{Key: "part", Value: chosen}}
	if len(rest) > 0 {
		pairs = append(pairs, trace.Pair{Key: "parts_left_out", Value: strings.Join(rest[:min(len(rest), most)], ", ")})
	}
	return pairs
}

// trace returns the trace of the part that is asked for. The time of its first call becomes 0.
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
	return p.trace(h, x)
}
