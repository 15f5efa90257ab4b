package replay

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// torchFormat is the format of traces whose placements and final state are written in the form of
// PyTorch's vectors.
const torchFormat = "torch"

// torchLines writes placements in the form of PyTorch's vectors: a line for each request, after the
// actions of the strategy. An error is kept for the replay's next line, because a history listener
// cannot return it.
type torchLines struct {
	out io.Writer
	ids map[device.Addr]uint64 // names of the blocks that are live or pending, by their start
	err error
}

// newTorchLines returns the writer of r's lines in PyTorch's form. It returns nil for a trace in
// another format and for a strategy that is not [power.Counted].
func (r *runner) newTorchLines() *torchLines {
	if r.p.head.Header.Format != torchFormat || !power.Has(r.s, power.PowerCounted) {
		return nil
	}
	l := &torchLines{out: r.o.Placements, ids: map[device.Addr]uint64{}}
	if l.out != nil {
		// The error means that the strategy has no history.
		_ = power.SetHistory(r.s, l.writeAction)
	}
	return l
}

// endHistory removes the history listener, so that actions after the last event are not written.
func (r *runner) endHistory() error {
	if r.torch == nil || r.torch.out == nil {
		return nil
	}
	_ = power.SetHistory(r.s, nil) // as above
	return r.torch.err
}

func (l *torchLines) write(line string) error {
	if l.err == nil {
		_, l.err = io.WriteString(l.out, line+"\n")
	}
	return l.err
}

// writeAction writes an action of the strategy.
func (l *torchLines) writeAction(a power.Action) {
	line := "! " + a.Kind.String()
	switch a.Kind {
	case power.FreeCompleted:
		id, known := l.ids[a.Addr]
		if !known && l.err == nil {
			l.err = fmt.Errorf("the strategy completed a free at %v, where it granted no block", a.Addr)
		}
		line += " " + strconv.FormatUint(id, 10)
	case power.OutOfMemory:
		line += fmt.Sprintf(" device_free=%d size=%d stream=%d", uint64(a.DeviceFree), uint64(a.Size), uint64(a.Stream))
	default:
		line += " " + offset(a.Addr) + " " + decimal(a.Size) + " " + stream(a.Stream)
	}
	_ = l.write(line) // kept
}

// placement writes the line of a request.
func (l *torchLines) placement(e *trace.Event, b *block) error {
	line := strconv.FormatUint(e.ID, 10)
	switch {
	case b.live:
		l.ids[b.addr] = e.ID
		line += " " + offset(b.addr) + " " + decimal(b.size)
	case b.size == verdictNull:
		line += " NULL 0"
	default: // the original has no other answer, not even to a size that it can never grant
		line += verdicts[verdictOOM]
	}
	return l.write(line)
}

// totalCounters are the counters of a line of totals, in its order.
var totalCounters = [...]string{
	"allocated_bytes.all.current", "active_bytes.all.current", "reserved_bytes.all.current",
	"inactive_split_bytes.all.current", "requested_bytes.all.current", "segment.all.current",
}

// totals returns the line of totals in PyTorch's terms, and whether the strategy counts in them:
// those counters, and the bytes that are taken from the device.
func (r *runner) totals() (line string, ok bool) {
	counters := countersOf(r.s)
	line = "t"
	for _, name := range totalCounters {
		value, ok := counters.Get(name)
		if !ok {
			return "", false
		}
		line += " " + strconv.FormatInt(value, 10)
	}
	return line + " " + decimal(r.top.Usage().Charged) + "\n", true
}

// writeTorchFinal writes the state at the end in the form of PyTorch's vectors: its counters, and
// its segments with their blocks.
func (r *runner) writeTorchFinal(out io.Writer) error {
	w := bufio.NewWriter(out)
	writeCounters(w, countersOf(r.s))
	var s segment
	for c := range r.s.Walk {
		// Slack, and memory that the device refused to take back, is not one of PyTorch's blocks.
		block := c.State != alloc.Unmapped && c.State != alloc.Slack
		if c.Region != s.Region || !block {
			s.write(w)
		}
		if block {
			s.add(c)
		}
	}
	s.write(w)
	return w.Flush()
}

// columns are the endings of the four counters that PyTorch keeps of one statistic.
var columns = [...]string{".current", ".peak", ".allocated", ".freed"}

// statistic returns the name of the statistic whose four counters come first, and false if another
// counter does.
func (c Counters) statistic() (string, bool) {
	if len(c) < len(columns) {
		return "", false
	}
	name, ok := strings.CutSuffix(c[0].Name, columns[0])
	for i, column := range columns {
		ok = ok && c[i].Name == name+column
	}
	return name, ok
}

// writeCounters writes a line for each statistic and for each plain count.
func writeCounters(w *bufio.Writer, c Counters) {
	for len(c) > 0 {
		if name, ok := c.statistic(); ok {
			fmt.Fprintf(w, "= stat %s %d %d %d %d\n", name, c[0].Value, c[1].Value, c[2].Value, c[3].Value)
			c = c[len(columns):]
			continue
		}
		fmt.Fprintf(w, "= count %s %d\n", c[0].Name, c[0].Value)
		c = c[1:]
	}
}

// segment is a segment of PyTorch's snapshot: adjacent chunks of one region that are all mapped.
type segment struct {
	alloc.Chunk // the first chunk
	total       device.Size
	allocated   device.Size // bytes of live chunks
	active      device.Size // bytes of live and pending chunks
	requested   device.Size // bytes requested for them
	blocks      strings.Builder
}

func (s *segment) add(c alloc.Chunk) {
	if s.total == 0 {
		s.Chunk = c
	}
	s.total += c.Size
	state, requested := "inactive", c.Was
	switch c.State {
	case alloc.Live:
		state, requested = "active_allocated", c.Requested
		s.allocated += c.Size
		s.active += c.Size
		s.requested += c.Requested
	case alloc.Pending:
		state, requested = "active_pending_free", c.Requested
		s.active += c.Size
		s.requested += c.Requested
	}
	s.blocks.WriteString("= block " + offset(c.Addr) + " " + decimal(c.Size) + " " + decimal(requested) + " " +
		state + "\n")
}

// write writes the segment, if it has chunks, and empties it.
func (s *segment) write(w *bufio.Writer) {
	if s.total == 0 {
		return
	}
	size, kind := "small", "fixed"
	if s.Class == power.ClassLarge {
		size = "large"
	}
	if s.Owner == power.OwnerExpandable {
		kind = "expandable"
	}
	fmt.Fprintf(w, "= segment %s %d %s %s %s pool=0,%d allocated=%d active=%d requested=%d\n%s",
		offset(s.Addr), uint64(s.total), stream(s.Stream), size, kind, uint64(s.Pool),
		uint64(s.allocated), uint64(s.active), uint64(s.requested), s.blocks.String())
	*s = segment{}
}

func stream(s device.Stream) string { return strconv.FormatUint(uint64(s), 10) }
