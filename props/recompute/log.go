package recompute

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// Kind is the kind of an [Op].
type Kind uint8

// The kinds.
const (
	Call    Kind = iota // run an operator
	Retain              // add a reference to a tensor
	Release             // drop a reference to a tensor
	Drop                // evict a tensor
	Keep                // keep a tensor from here on
)

// kindNames are the first words of lines, by kind.
var kindNames = [...]string{"call", "retain", "release", "drop", "keep"}

// Op is one line of a [Log].
type Op struct {
	Kind    Kind        // its first word
	Of      int         // the tensor; not for Call
	Outputs []Output    // for Call
	Reads   []int       // tensors
	Time    int64       // nanoseconds
	Work    device.Size // bytes of workspace
	Fixed   bool        // it cannot run again
}

// Output is a result of an operator.
type Output struct {
	Name  int         // the tensor, a number of its own
	Size  device.Size // bytes, unless it is a view
	View  bool        // it shares the storage of tensor Of, which the operator reads
	Write bool        // likewise, and the operator writes to it
	Of    int         // for View and Write
}

// Log is a training step and the memory for it.
type Log struct {
	Budget device.Size // remat.Unlimited for none
	Ops    []Op        // in order
}

// Parse parses the text of a log, one operation a line:
//
//	budget 12
//	call 1:4 fixed
//	call 2:8 3:@1 time 5 reads 1 1 work 2
//	release 2
//
// An output is followed by its bytes, by @ and a tensor that it is a view of, or by = and a tensor
// that it overwrites. The other words are retain, drop and
// keep.
func Parse(text string) (Log, error) {
	l := Log{Budget: remat.Unlimited}
	for i, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }) {
		if err := l.parse(strings.Fields(line)); err != nil {
			return Log{}, fmt.Errorf("line %d: %q: %w", i+1, line, err)
		}
	}
	return l, nil
}

var errLine = errors.New("want call, retain, release, drop, keep or budget, and numbers")

func (l *Log) parse(words []string) error {
	if len(words) < 2 {
		return errLine
	}
	kind := slices.Index(kindNames[:], words[0])
	if kind == int(Call) {
		return l.parseCall(words[1:])
	}
	n, err := strconv.ParseUint(words[1], 10, 32)
	switch {
	case err != nil || len(words) > 2 || kind < 0 && words[0] != "budget":
		return errLine
	case kind < 0:
		l.Budget = device.Size(n)
	default:
		l.Ops = append(l.Ops, Op{Kind: Kind(kind), Of: int(n)})
	}
	return nil
}

func (l *Log) parseCall(words []string) error {
	o, of := Op{}, "outputs"
	for _, word := range words {
		switch word {
		case "fixed":
			o.Fixed = true
			continue
		case "time", "reads", "work":
			of = word
			continue
		}
		output, size, sized := strings.Cut(word, ":")
		n, err := strconv.ParseUint(output, 10, 32)
		if err != nil || sized != (of == "outputs") {
			return errLine
		}
		switch of {
		case "outputs":
			out := Output{Name: int(n), View: size[:min(1, len(size))] == "@", Write: size[:min(1, len(size))] == "="}
			v, err := strconv.ParseUint(strings.TrimLeft(size, "@="), 10, 32)
			if err != nil {
				return errLine
			}
			if out.Of = int(v); !out.View && !out.Write {
				out.Of, out.Size = 0, device.Size(v)
			}
			o.Outputs = append(o.Outputs, out)
		case "time":
			o.Time = int64(n)
		case "reads":
			o.Reads = append(o.Reads, int(n))
		case "work":
			o.Work = device.Size(n)
		}
	}
	l.Ops = append(l.Ops, o)
	return nil
}

// String returns the text of a log.
func (l Log) String() string {
	var t strings.Builder
	if l.Budget != remat.Unlimited {
		fmt.Fprintf(&t, "budget %d\n", l.Budget)
	}
	for _, o := range l.Ops {
		t.WriteString(kindNames[o.Kind])
		if o.Kind != Call {
			fmt.Fprintf(&t, " %d\n", o.Of)
			continue
		}
		for _, out := range o.Outputs {
			switch {
			case out.View:
				fmt.Fprintf(&t, " %d:@%d", out.Name, out.Of)
			case out.Write:
				fmt.Fprintf(&t, " %d:=%d", out.Name, out.Of)
			default:
				fmt.Fprintf(&t, " %d:%d", out.Name, out.Size)
			}
		}
		if o.Fixed {
			t.WriteString(" fixed")
		}
		if o.Time > 0 {
			fmt.Fprintf(&t, " time %d", o.Time)
		}
		if len(o.Reads) > 0 {
			fmt.Fprint(&t, " reads ", strings.Trim(fmt.Sprint(o.Reads), "[]"))
		}
		if o.Work > 0 {
			fmt.Fprintf(&t, " work %d", o.Work)
		}
		t.WriteByte('\n')
	}
	return t.String()
}

// Schedule returns the log as remat runs it. Every selection of lines is a log: reads of unknown
// or released tensors are left out, and so are operations that the builder refuses. Tensors that
// are referred to at the end are kept, as results of the step.
func (l Log) Schedule() *remat.Schedule {
	var b remat.Builder
	named := map[int]remat.Tensor{}
	for _, o := range l.Ops {
		if o.Kind == Call {
			call(&b, named, o)
			continue
		}
		if t, ok := named[o.Of]; ok { // an error changes nothing
			switch o.Kind {
			case Retain:
				_ = b.Retain(t)
			case Release:
				_ = b.Release(t)
			case Drop:
				_ = b.Drop(t)
			default:
				_ = b.Pin(t)
			}
		}
	}
	all := b.Schedule().Tensors
	for t := range all {
		if b.References(remat.Tensor(t)) > 0 {
			_ = b.Pin(remat.Tensor(t)) // it has a reference
		}
	}
	return b.Schedule()
}

func call(b *remat.Builder, named map[int]remat.Tensor, o Op) {
	c := remat.Call{Cost: o.Time, Workspace: o.Work, Fixed: o.Fixed}
	at := map[int]int{} // by name: index of the argument
	for _, name := range o.Reads {
		if t, ok := named[name]; ok && b.References(t) > 0 {
			at[name] = len(c.Args)
			c.Args = append(c.Args, t)
		}
	}
	for _, out := range o.Outputs {
		of := remat.Output{Size: out.Size, Alias: remat.NoAlias}
		if arg, ok := at[out.Of]; ok && (out.View || out.Write) {
			of = remat.Output{Alias: arg, Written: out.Write}
		}
		c.Outputs = append(c.Outputs, of)
	}
	first, err := b.Call(c)
	if err != nil {
		return
	}
	for i, out := range o.Outputs {
		named[out.Name] = first + remat.Tensor(i)
	}
}
