package formats

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// call is one line of a log that names blocks by their address.
type call struct {
	kind   trace.Kind // Alloc, Free, Refused or Mark
	tag    uint32     // index into texts
	stream device.Stream
	addr   uint64
	size   uint64 // bytes; of a free 0 if the log does not tell
	time   int64  // nanoseconds on any clock
}

// log is what happened in one part of a file: on a device, or in an allocator.
type log struct {
	part  string
	host  bool // memory of the host, which is not what people ask about
	calls []call
	// unseen is what was live all the time without being mentioned, in bytes.
	unseen uint64
	// lost counts the lines that are missing, as running totals tell.
	lost int
}

// texts are the tags of a file, each once.
type texts struct {
	list []string
	by   map[string]uint32
	held int
}

// maxTexts bounds the bytes of all tags of a file.
const maxTexts = 1 << 26

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
		x.by[s] = i
		x.list = append(x.list, s)
		if x.held += len(s); x.held > maxTexts {
			return 0, fmt.Errorf("more than %d bytes of names", maxTexts)
		}
	}
	return i, nil
}

// logs are the parts of a file in the order in which they appear.
type logs struct {
	list []*log
	last *log
}

// part returns the log of a part, a new one if there was none.
func (l *logs) part(name string, host bool) *log {
	if l.last != nil && l.last.part == name {
		return l.last
	}
	i := slices.IndexFunc(l.list, func(p *log) bool { return p.part == name })
	if i < 0 {
		i = len(l.list)
		l.list = append(l.list, &log{part: name, host: host})
	}
	l.last = l.list[i]
	return l.last
}

// maxParts bounds the devices or allocators of one file.
const maxParts = 4096

// errParts is what is wrong with a file that has more.
var errParts = fmt.Errorf("more than %d devices or allocators", maxParts)

// part is one of several traces in a file. A part that is idle is taken only by its name, or if all are.
type part struct {
	name   string
	idle   bool
	events int
}

// choose returns the index of the part that is asked for: by its name, or the only one that is not
// idle, or the only one at all. It also names those that are left out.
func choose(parts []part, want string) (chosen int, rest []string, err error) {
	chosen = slices.IndexFunc(parts, func(p part) bool { return p.name == want })
	if want == "" {
		devices := len(parts)
		for _, p := range parts {
			if p.idle {
				devices--
			}
		}
		chosen = slices.IndexFunc(parts, func(p part) bool { return !p.idle || devices == 0 })
		if devices > 1 || devices == 0 && len(parts) > 1 {
			return 0, nil, fmt.Errorf("holds several parts, name one of them: %s", describe(parts))
		}
	}
	if chosen < 0 {
		return 0, nil, fmt.Errorf("has no part %q: want %s", want, describe(parts))
	}
	for i, p := range parts {
		if i != chosen {
			rest = append(rest, p.name)
		}
	}
	return chosen, rest, nil
}

// describe lists parts for a message.
func describe(parts []part) string {
	const most = 16
	var list []string
	for i, p := range parts {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(parts)-most))
			break
		}
		list = append(list, fmt.Sprintf("%s (%d events)", clip([]byte(p.name)), p.events))
	}
	return strings.Join(list, ", ")
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
		parts[i] = part{p.part, p.host, len(p.calls)}
	}
	chosen, rest, err := choose(parts, in.Part)
	if err != nil {
		return nil, err
	}
	p := l.list[chosen]
	h.Meta = append(h.Meta, leftOut(p.part, rest)...)
	r := resolver{log: p, at: map[uint64]int{}}
	r.resolve()
	return r.trace(h, x)
}

// stay is the life of a block at an address.
type stay struct {
	size    uint64
	stream  device.Stream
	tag     uint32
	opening bool // live at the start
	addr    uint64
	id      uint64 // in the trace
}

// noStay stands for the call of which nothing is known.
const noStay = -1

// resolver gives every stay at an address an id.
type resolver struct {
	*log
	stays  []stay
	at     map[uint64]int // the stay at an address; noStay if there was one and is none
	of     []int          // by call: the stay that it begins or ends, or noStay
	evicts []int          // by call: the stay whose free was lost, or noStay

	lostFrees, lostAllocs, disagree, unsized int
}

// resolve finds out which stay each call is about.
func (r *resolver) resolve() {
	r.of, r.evicts = make([]int, len(r.calls)), make([]int, len(r.calls))
	for i := range r.calls {
		c := &r.calls[i]
		r.of[i], r.evicts[i] = noStay, noStay
		switch c.kind {
		case trace.Alloc:
			if old, ok := r.at[c.addr]; ok && old != noStay {
				r.evicts[i] = old
				r.lostFrees++
			}
			r.of[i] = r.begin(c, false)
		case trace.Free:
			r.of[i] = r.end(c)
		}
	}
	id := uint64(0)
	for _, s := range r.order() {
		s.id = id
		id++
	}
	for i := range r.stays {
		if s := &r.stays[i]; !s.opening {
			s.id = id
			id++
		}
	}
}

// begin books a stay.
func (r *resolver) begin(c *call, opening bool) int {
	r.stays = append(r.stays, stay{size: c.size, stream: c.stream, tag: c.tag, opening: opening, addr: c.addr})
	r.at[c.addr] = len(r.stays) - 1
	return len(r.stays) - 1
}

// end returns the stay that a free ends, if one is known.
func (r *resolver) end(c *call) int {
	s, ok := r.at[c.addr]
	switch {
	case !ok && c.size == 0:
		r.unsized++
		s = noStay
	case !ok:
		s = r.begin(c, true)
	case s == noStay:
		r.lostAllocs++
	case c.size != 0 && c.size != r.stays[s].size:
		r.disagree++
	}
	r.at[c.addr] = noStay
	return s
}

// order returns the stays that were there at the start, by stream and address.
func (r *resolver) order() []*stay {
	var list []*stay
	for i := range r.stays {
		if r.stays[i].opening {
			list = append(list, &r.stays[i])
		}
	}
	slices.SortStableFunc(list, func(a, b *stay) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.addr, b.addr))
	})
	return list
}

// trace builds the trace of what was resolved.
func (r *resolver) trace(h trace.Header, x *texts) (*trace.Trace, error) {
	opening := r.order()
	clock, clamped := r.clock()
	facts := []struct {
		key string
		n   int
	}{
		{"live_at_start_unmentioned_bytes", int(min(r.unseen, 1<<62))},
		{"frees_lost", r.lostFrees}, {"allocations_lost", r.lostAllocs}, {"lines_lost", r.lost},
		{"frees_of_unknown_size_left_out", r.unsized}, {"free_sizes_that_disagree", r.disagree},
		{"times_that_went_back", clamped},
	}
	for _, f := range facts {
		if f.n > 0 {
			h.Meta = append(h.Meta, trace.Pair{Key: f.key, Value: strconv.Itoa(f.n)})
		}
	}
	b := trace.NewBuilder(h)
	for _, s := range opening {
		e := trace.Event{Kind: trace.LiveAtStart, ID: s.id, Size: device.Size(s.size), Stream: s.stream, Time: trace.NoTime}
		if err := b.Add(e); err != nil {
			return nil, err
		}
	}
	if r.unseen > 0 {
		e := trace.Event{Kind: trace.LiveAtStart, ID: uint64(len(r.stays)), Size: device.Size(r.unseen), Time: trace.NoTime}
		e.Tag = b.Tag("never mentioned")
		if err := b.Add(e); err != nil {
			return nil, err
		}
	}
	for i := range r.calls {
		if err := r.add(b, i, clock[i], x); err != nil {
			return nil, err
		}
	}
	return b.Trace(), nil
}

// add adds the events of call i.
func (r *resolver) add(b *trace.Builder, i int, now int64, x *texts) error {
	c := &r.calls[i]
	if old := r.evicts[i]; old != noStay {
		if err := b.Add(trace.Event{Kind: trace.Free, ID: r.stays[old].id, Time: now}); err != nil {
			return err
		}
	}
	e := trace.Event{Kind: c.kind, Time: now}
	switch c.kind {
	case trace.Alloc, trace.Refused:
		e.Size, e.Stream = device.Size(c.size), c.stream
	}
	if c.kind == trace.Alloc || c.kind == trace.Free {
		if r.of[i] == noStay {
			return nil
		}
		e.ID = r.stays[r.of[i]].id
	}
	if c.tag != 0 && c.kind != trace.Free {
		e.Tag = b.Tag(x.list[c.tag])
	}
	return b.Add(e)
}

// clock returns the times of the calls, counted from the first and never decreasing, and how many
// had to be raised for it.
func (r *resolver) clock() (times []int64, clamped int) {
	times = make([]int64, len(r.calls))
	var now int64
	for i := range r.calls {
		t := r.calls[i].time - r.calls[0].time
		if t < now {
			clamped++
		}
		now = max(now, t)
		times[i] = now
	}
	return times, clamped
}
