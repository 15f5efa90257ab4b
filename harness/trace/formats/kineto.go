package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// kinetoFormat is the trace format of PyTorch's profiler.
var kinetoFormat = Format{
	Name:      "kineto",
	Framework: "PyTorch",
	Doc:       "the trace of PyTorch's profiler with profile_memory=True, JSON of the Chrome trace form",
	Absent: "streams, when delayed frees become final, sizes as requested (a CUDA device's are rounded to blocks, " +
		"by less than 512 bytes, up to 1 MiB for large blocks)",
	Recognize: func(head []byte) bool {
		keys, list := keysIn(head)
		if list != "" {
			return list == "{" && slices.Contains(keys, "ph")
		}
		return slices.ContainsFunc(keys, func(k string) bool {
			return k == "traceEvents" || k == "schemaVersion" || k == "deviceProperties"
		})
	},
	Read:  readKineto,
	Parts: true,
}

// kinetoEvent holds the relevant fields of a profiler event.
type kinetoEvent struct {
	Name string          `json:"name"`
	Cat  string          `json:"cat"`
	Time json.RawMessage `json:"ts"`
	Args json.RawMessage `json:"args"`
}

// kinetoArgs holds the arguments of a memory event.
type kinetoArgs struct {
	Type  json.Number `json:"Device Type"`
	ID    json.Number `json:"Device Id"`
	Addr  json.Number `json:"Addr"`
	Bytes json.Number `json:"Bytes"`
	Total json.Number `json:"Total Allocated"`
	Index json.Number `json:"Ev Idx"`
}

// kinetoCall is a call and its position in the order of calls.
type kinetoCall struct {
	call
	index    int64 // Ev Idx, or -1
	bytes    int64
	total    int64
	hasTotal bool
}

// kinetoReader collects the memory events of a file.
type kinetoReader struct {
	in    *Input
	doc   *document
	texts texts
	parts logs
	calls map[*log][]kinetoCall
	marks []call // the profiler's steps
}

// readKineto reads a trace. It skips all other events.
func readKineto(in *Input) (*trace.Trace, error) {
	doc, err := newDocument(in)
	if err != nil {
		return nil, err
	}
	r := &kinetoReader{
		in: in, doc: doc, calls: map[*log][]kinetoCall{}, texts: texts{memory: in.budget}, parts: in.logs(),
	}
	if err := r.document(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.marks, func(a, b call) int { return cmp.Compare(a.time, b.time) })
	for _, p := range r.parts.list {
		if err := r.order(p, r.calls[p]); err != nil {
			return nil, err
		}
		budget.Release(in.budget, r.calls[p])
		delete(r.calls, p)
	}
	return r.parts.trace(in, in.header("kineto"), &r.texts,
		errors.New("has no events about memory: the profiler records them with profile_memory=True"))
}

// document reads the whole file: an object with a list of events, or only the list.
func (r *kinetoReader) document() error {
	t, err := r.doc.token()
	if err != nil {
		return err
	}
	if t == json.Delim('[') {
		err = r.events()
	} else {
		err = r.object()
	}
	if err != nil {
		return err
	}
	return r.doc.end()
}

// object reads the members of the outermost object.
func (r *kinetoReader) object() error {
	for r.doc.more() {
		key, err := r.doc.token()
		if err != nil {
			return err
		}
		if key != "traceEvents" {
			err = r.doc.skip()
		} else if err = r.doc.open('[', "the list of events"); err == nil {
			err = r.events()
		}
		if err != nil {
			return err
		}
	}
	_, err := r.doc.token()
	return err
}

// events reads the list of events.
func (r *kinetoReader) events() error {
	for r.doc.more() {
		var e kinetoEvent
		if err := r.doc.value(&e, "an event"); err != nil {
			return err
		}
		if err := r.event(&e); err != nil {
			return r.doc.wrong(err)
		}
	}
	_, err := r.doc.token()
	return err
}

func (r *kinetoReader) event(e *kinetoEvent) error {
	c := kinetoCall{index: -1}
	switch {
	case e.Name == "[memory]", e.Name == "[OutOfMemory]":
	case strings.HasPrefix(e.Name, "ProfilerStep#") && !strings.HasPrefix(e.Cat, "gpu_"):
		c.kind = trace.Mark
	default:
		return nil
	}
	var err error
	if c.time, err = micros("ts", json.Number(bytes.Trim(e.Time, `"`))); err != nil {
		return err
	}
	if c.kind == trace.Mark {
		if c.tag, err = r.texts.index(e.Name); err == nil {
			r.marks, err = budget.Append(r.in.budget, r.marks, c.call)
		}
		return err
	}
	var a kinetoArgs
	if err := json.Unmarshal(e.Args, &a); err != nil {
		return fmt.Errorf("args of %s: want an object with Device Type, Device Id, Addr and Bytes", e.Name)
	}
	if err := c.fill(&a, e.Name == "[OutOfMemory]"); err != nil {
		return err
	}
	name, host, err := kinetoPart(&a)
	if err != nil {
		return err
	}
	p, err := r.parts.part(name, host)
	if err != nil {
		return err
	}
	r.calls[p], err = budget.Append(r.in.budget, r.calls[p], c)
	return err
}

// fill reads the arguments of an event. A negative number of bytes is a free.
func (c *kinetoCall) fill(a *kinetoArgs, refused bool) (err error) {
	if c.bytes, err = integer("Bytes", a.Bytes); err != nil {
		return err
	}
	if a.Index != "" {
		if c.index, err = integer("Ev Idx", a.Index); err != nil {
			return err
		}
	}
	if a.Total != "" {
		if c.total, err = integer("Total Allocated", a.Total); err != nil {
			return err
		}
		c.hasTotal = true
	}
	switch {
	case refused && c.bytes < 0:
		return fmt.Errorf("key Bytes is %d: a request is not negative", c.bytes)
	case refused:
		c.kind, c.size, c.bytes = trace.Refused, uint64(c.bytes), 0
		return nil
	case c.bytes < 0:
		c.kind, c.size = trace.Free, -uint64(c.bytes)
	default:
		c.kind, c.size = trace.Alloc, uint64(c.bytes)
	}
	c.addr, err = rmmSize(a.Addr.String())
	if err != nil {
		return fmt.Errorf("key Addr is %s: want an address", clip([]byte(a.Addr)))
	}
	return nil
}

// kinetoPart returns the name of a device, and whether it is the host.
func kinetoPart(a *kinetoArgs) (name string, host bool, err error) {
	kind, err := integer("Device Type", a.Type)
	if err != nil {
		return "", false, err
	}
	id := int64(-1)
	if a.ID != "" {
		if id, err = integer("Device Id", a.ID); err != nil {
			return "", false, err
		}
	}
	switch kind {
	case 0:
		return "cpu", true, nil
	case 1:
		return fmt.Sprintf("cuda:%d", max(id, 0)), false, nil
	}
	return fmt.Sprintf("device-type-%d:%d", kind, max(id, 0)), false, nil
}

// order replays the calls of a part in order, with the steps between them, and checks the running
// totals.
func (r *kinetoReader) order(p *log, calls []kinetoCall) error {
	indexed := !slices.ContainsFunc(calls, func(c kinetoCall) bool { return c.index < 0 })
	slices.SortStableFunc(calls, func(a, b kinetoCall) int {
		if indexed {
			return cmp.Compare(a.index, b.index)
		}
		return cmp.Compare(a.time, b.time)
	})
	if err := p.totals(calls); err != nil {
		return err
	}
	marks := r.marks
	for i := range calls {
		for len(marks) > 0 && marks[0].time <= calls[i].time {
			if err := p.add(&marks[0]); err != nil {
				return err
			}
			marks = marks[1:]
		}
		if err := p.add(&calls[i].call); err != nil {
			return err
		}
	}
	for i := range marks {
		if err := p.add(&marks[i]); err != nil {
			return err
		}
	}
	return nil
}

// totals derives from the running totals how many calls are missing, and the bytes that were live
// throughout without a call: the total before the first call, minus the frees without an
// allocation.
func (p *log) totals(calls []kinetoCall) error {
	var before int64
	seen := map[uint64]bool{}
	defer func() { p.memory.Give(int64(len(seen)) * budget.EntrySize[uint64, bool]()) }()
	opening := uint64(0)
	known := false
	for i := range calls {
		c := &calls[i]
		if c.kind == trace.Free && !seen[c.addr] {
			opening += c.size
		}
		if c.kind != trace.Refused {
			if err := budget.Put(p.memory, seen, c.addr, true); err != nil {
				return err
			}
		}
		if !c.hasTotal {
			continue
		}
		if known && c.total != before+c.bytes {
			p.lost++
		}
		if !known && c.total-c.bytes > 0 {
			p.unseen = uint64(c.total - c.bytes)
		}
		before, known = c.total, true
	}
	p.unseen -= min(p.unseen, opening)
	return nil
}
