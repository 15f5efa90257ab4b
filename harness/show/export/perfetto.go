package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Process and thread IDs. Threads from threadLanes on are the lanes of blocks.
const (
	processStrategy = 1
	processDevice   = 2

	threadPhases = 1
	threadOOM    = 2
	threadLanes  = 10
	threadCalls  = 1
)

// WritePerfetto writes the run in the Chrome trace event format (JSON): requested, allocated,
// active and reserved bytes over time, the lives of blocks, the trace's marks as phases, failed
// requests, and the driver calls as a process of their own.
//
// Of more than 100,000 blocks, or more than 256 at a time, those at the peak and the largest are
// drawn; of more than 100,000 driver calls the longest. Curves have at most 65,536 points, each the
// maximum over its events. otherData holds the number of omitted items.
func (r *Run) WritePerfetto(w io.Writer) error {
	p := &painter{Run: r, w: bufio.NewWriterSize(w, 1<<16)}
	blocks, calls := r.blocks(), r.longest()
	p.head(len(r.lives)-len(blocks), len(r.calls)-len(calls))
	lanes := 0
	for _, b := range blocks {
		lanes = max(lanes, b.lane+1)
	}
	p.titles(lanes)
	p.curves()
	p.phases()
	for _, b := range blocks {
		p.block(b)
	}
	for i := range r.ooms {
		p.oom(&r.ooms[i])
	}
	for _, c := range calls {
		p.call(c)
	}
	p.w.WriteString("\n]}\n")
	return p.w.Flush()
}

// painter writes the events. Write errors are kept by w until Flush.
type painter struct {
	*Run
	w     *bufio.Writer
	text  []byte // scratch
	event int    // events written
}

// head writes the metadata, and begins the list of events.
func (p *painter) head(blocks, calls int) {
	about, err := json.Marshal(struct {
		Strategy string          `json:"strategy"`
		Config   json.RawMessage `json:"config"`
		Trace    string          `json:"trace"`
		Hash     string          `json:"trace_sha256"`
		Events   int             `json:"events"`
		Blocks   int             `json:"blocks_not_drawn"`
		Calls    int             `json:"device_calls_not_drawn"`
	}{p.strategy, p.config, p.header.Name, p.header.Hash, p.events, blocks, calls})
	if err != nil {
		panic(err) // the configuration is valid JSON, nothing else can fail
	}
	p.w.WriteString(`{"displayTimeUnit":"ns","otherData":`)
	p.w.Write(about)
	p.w.WriteString(`,"traceEvents":[`)
}

func (p *painter) begin(phase string, process, thread int, name string) {
	if p.event > 0 {
		p.w.WriteByte(',')
	}
	p.event++
	p.text = fmt.Appendf(p.text[:0], "\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"name\":", phase, process, thread)
	p.quote(name)
}

// quote appends a JSON string.
func (p *painter) quote(text string) {
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		p.text = append(append(append(p.text, '"'), text...), '"') // the usual case
		return
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always valid JSON
	}
	p.text = append(p.text, quoted...)
}

// time appends a key with nanoseconds as microseconds.
func (p *painter) time(key string, ns int64) {
	p.text = fmt.Appendf(p.text, `,"%s":%d`, key, ns/1000)
	if rest := ns % 1000; rest != 0 {
		p.text = fmt.Appendf(p.text, ".%03d", rest)
	}
}

// arg is an argument of an event: text if set, otherwise a number.
type arg struct {
	key    string
	text   string
	number uint64
}

// end ends an event with its arguments.
func (p *painter) end(args ...arg) {
	before := `,"args":{`
	for _, a := range args {
		p.text = append(p.text, before...)
		before = ","
		p.quote(a.key)
		p.text = append(p.text, ':')
		if a.text != "" {
			p.quote(a.text)
		} else {
			p.text = strconv.AppendUint(p.text, a.number, 10)
		}
	}
	if len(args) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, '}')
	p.w.Write(p.text)
}

// titles names and orders the processes and threads.
func (p *painter) titles(lanes int) {
	named := func(what string, process, thread, order int, name string) {
		p.begin("M", process, thread, what+"_name")
		p.end(arg{key: "name", text: name})
		p.begin("M", process, thread, what+"_sort_index")
		p.end(arg{key: "sort_index", number: uint64(order)})
	}
	process := func(n int, name string) { named("process", n, 0, n, name) }
	thread := func(process, n int, name string) { named("thread", process, n, n, name) }
	process(processStrategy, p.strategy+" on "+p.header.Name)
	thread(processStrategy, threadPhases, "phases")
	thread(processStrategy, threadOOM, "out of memory")
	for i := range lanes {
		thread(processStrategy, threadLanes+i, "blocks "+strconv.Itoa(i+1))
	}
	process(processDevice, "device")
	thread(processDevice, threadCalls, "calls")
}

// curves writes the sums where they change.
func (p *painter) curves() {
	for k, name := range curveNames {
		for i := range p.sampler.points {
			x := &p.sampler.points[i]
			if i > 0 && i+1 < len(p.sampler.points) && x.most[k] == p.sampler.points[i-1].most[k] {
				continue
			}
			p.begin("C", processStrategy, 0, name)
			p.time("ts", x.at)
			p.end(arg{key: "bytes", number: uint64(x.most[k])})
		}
	}
}

// slice begins an event with a start and an end.
func (p *painter) slice(process, thread int, name string, from, to int64) {
	p.begin("X", process, thread, name)
	p.time("ts", from)
	p.time("dur", max(to-from, 0))
}

// phases writes each mark as a phase that lasts until the next one.
func (p *painter) phases() {
	for i, m := range p.marks {
		end := p.last
		if i+1 < len(p.marks) {
			end = p.marks[i+1].at
		}
		p.slice(processStrategy, threadPhases, p.torch.Strings[m.name], m.at, end)
		p.end()
	}
}

func (p *painter) block(b drawn) {
	tag, name := "", b.requested.String()
	if b.stack != 0 {
		tag = p.torch.Strings[p.torch.Frames[p.torch.Calls.At(b.stack).Frame].Function]
		name = tag
	}
	p.slice(processStrategy, threadLanes+b.lane, name, b.start, min(b.end, p.last))
	args := []arg{
		{key: "id", number: b.id},
		{key: "address", text: "0x" + strconv.FormatUint(uint64(b.block.Addr), 16)},
		{key: "requested_bytes", number: uint64(b.requested)},
		{key: "granted_bytes", number: uint64(b.block.Size)},
		{key: "stream", number: uint64(p.torch.Devices[0].History.Streams[b.stream])},
	}
	if tag != "" {
		args = append(args, arg{key: "tag", text: tag})
	}
	p.end(args...)
}

// oom writes a failed request as an instant of the whole process.
func (p *painter) oom(x *oom) {
	p.begin("i", processStrategy, threadOOM, "out of memory: "+x.requested.String())
	p.text = append(p.text, `,"s":"p"`...)
	p.time("ts", x.at)
	p.end(arg{key: "id", number: x.id}, arg{key: "requested_bytes", number: uint64(x.requested)},
		arg{key: "stream", number: uint64(x.stream)}, arg{key: "device_free_bytes", number: uint64(x.free)})
}

func (p *painter) call(c *call) {
	name := c.kind.String()
	if c.failed {
		name += ", refused"
	}
	p.slice(processDevice, threadCalls, name, c.start, c.end())
	args := []arg{{key: "event", number: uint64(c.event)}}
	if c.size != 0 {
		args = append(args, arg{key: "bytes", number: uint64(c.size)})
	}
	p.end(args...)
}
