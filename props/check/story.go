package check

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

// Story is the run of a strategy up to a broken invariant.
type Story struct {
	Steps     []Step           // calls in their order; the invariant broke in the last, or after it
	Violation *props.Violation // the invariant, and the finding
}

// Step is one call and the walk after it.
type Step struct {
	Call    string   // as a line of a trace has it
	Answer  string   // of the strategy; empty if it did not answer
	Device  []string // device calls from this call to the next, with their answers
	Rows    []Row    // the chunks afterwards, in the order of the walk
	Cut     bool     // the listing is cut
	Trouble string   // error while the strategy was built or walked; empty for none
}

// Row is a chunk and the number of omitted equal chunks after it.
type Row struct {
	alloc.Chunk
	More int // chunks of the same region, size, state, class and pool
}

// Reproduce repeats the calls of a failure and records each with its answer and the walk after it.
// The story of a strategy that panics has all calls before. The subject must be the one of the
// failure. A call that hung is the last step, and is not made again. If the strategy keeps every
// invariant this time, Reproduce returns an error with the story.
func Reproduce(s props.Subject, f *props.Failure) (*Story, error) {
	n := &notebook{}
	inner := s.New
	instances := 0
	s.New = func(src device.Source) (alloc.Strategy, error) {
		if instances++; instances > len(n.pages) {
			return inner(src)
		}
		p := &n.pages[instances-1]
		p.begin("build the strategy")
		a, err := inner(newWitness(src, p))
		if err != nil {
			p.step().Trouble = "not built: " + err.Error()
		}
		p.strategy = a
		return a, err
	}
	err := props.Repeat(s, f, n.pages[0].watch, n.pages[1].watch)
	var v *props.Violation
	if !errors.As(err, &v) {
		v = &props.Violation{Number: f.Violation.Number,
			Detail: "kept this time: the strategy depends on more than its calls"}
	}
	story := &Story{n.steps(), v}
	if f.Hung {
		story.Steps = append(story.Steps, Step{Call: v.Detail})
	}
	if err == nil {
		return story, fmt.Errorf("%s: %v was not broken again", f.Subject, f.Violation.Number)
	}
	return story, nil
}

// WriteText writes a story: for each call the call with its answer, the traffic with the device,
// and the chunks one a line. The call after which the invariant broke is marked.
func (s *Story) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range s.Steps {
		mark := " "
		if i == len(s.Steps)-1 {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %2d  ", mark, i)
		s.Steps[i].write(&b)
	}
	fmt.Fprintf(&b, "> %v\n", s.Violation)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Step) write(b *strings.Builder) {
	b.WriteString(s.Call)
	if s.Answer != "" {
		b.WriteString(": " + s.Answer)
	}
	b.WriteString("\n")
	for _, line := range s.Device {
		fmt.Fprintf(b, "        device: %s\n", line)
	}
	for i, r := range s.Rows {
		if i == 0 || r.Region != s.Rows[i-1].Region {
			fmt.Fprintf(b, "        region %v\n        %12s %12s %-8s %12s %6s\n", r.Region, "offset", "size", "state",
				"requested", "class")
		}
		fmt.Fprintf(b, "        %12d %12d %-8v %12d %6d", int64(r.Addr-r.Region), uint64(r.Size), r.State,
			uint64(r.Requested), r.Class)
		if r.Pool != 0 {
			fmt.Fprintf(b, "  pool %d", uint64(r.Pool))
		}
		b.WriteString("\n")
		if r.More > 0 {
			fmt.Fprintf(b, "        %12s and %d more like it\n", "", r.More)
		}
	}
	if s.Cut {
		b.WriteString("        and so on\n")
	}
	if s.Trouble != "" {
		fmt.Fprintf(b, "        %s\n", s.Trouble)
	}
}

// notebook records the two instances of a sequence. The second instance gets the same calls without
// the final frees, so only its end is new.
type notebook struct {
	pages [2]page
}

type page struct {
	strategy alloc.Strategy
	steps    []Step
	closed   int // the first step of closing, 0 if none
}

// steps returns the steps of both instances. The last one violates the invariant.
func (n *notebook) steps() []Step {
	steps := n.pages[0].steps
	if second := &n.pages[1]; second.closed != 0 {
		before := second.steps[second.closed-1]
		before.Call = "a second instance, after all calls but the final frees, the last of them " + before.Call
		steps = append(append(steps, before), second.steps[second.closed:]...)
	}
	return steps
}

func (p *page) begin(call string) { p.steps = append(p.steps, Step{Call: call}) }

func (p *page) step() *Step { return &p.steps[len(p.steps)-1] }

// watch records a call, its answer and the walk after it, or its panic. It is a
// [props.Watcher].
func (p *page) watch(c props.Call, next func() props.Answer) props.Answer {
	if c.Closes() && p.closed == 0 {
		p.closed = len(p.steps)
	}
	p.begin(c.String())
	defer func() {
		if r := recover(); r != nil {
			p.step().Answer = fmt.Sprintf("panic: %v", r)
			panic(r)
		}
	}()
	a := next()
	if errors.Is(a.Err, alloc.ErrUnsupported) {
		p.steps = p.steps[:len(p.steps)-1] // the strategy was not called
	} else {
		p.look(answerText(c, a))
	}
	return a
}

func answerText(c props.Call, a props.Answer) string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case c.Kind == props.OpAlloc:
		return fmt.Sprintf("%v+%d", a.Block.Addr, uint64(a.Block.Size))
	case c.Kind == props.OpTrim || c.Kind == props.OpPoll:
		return fmt.Sprintf("%d bytes", uint64(a.Bytes))
	}
	return "done"
}

// look records an answer and the walk after it. A strategy that broke may panic while it is
// walked, or show chunks for ever; the page then notes this, and the calls continue.
func (p *page) look(answer string) {
	step := p.step()
	step.Answer = answer
	defer func() {
		if r := recover(); r != nil {
			step.Trouble = fmt.Sprintf("walk: panic: %v", r)
		}
	}()
	l := listing{step: step}
	p.strategy.Walk(l.chunk)
	l.flush()
}

// listing collects chunks, with runs of equal chunks as one row.
type listing struct {
	step  *Step
	alike []Row // the first few after the last row that look like it
	more  int   // how many there are of those
}

const (
	mostRows  = 500 // of a listing: a person reads no more
	mostAlike = 3   // similar chunks after a row that are still listed
)

// chunk adds a chunk and reports whether more are wanted.
func (l *listing) chunk(c alloc.Chunk) bool {
	if n := len(l.step.Rows); n > 0 {
		if last := l.step.Rows[n-1]; c.Region == last.Region && likeness(c) == likeness(last.Chunk) {
			if l.more++; l.more <= mostAlike {
				l.alike = append(l.alike, Row{Chunk: c})
			}
			return l.more < 1<<20
		}
	}
	l.flush()
	if len(l.step.Rows) >= mostRows {
		l.step.Cut = true
		return false
	}
	l.step.Rows = append(l.step.Rows, Row{Chunk: c})
	return true
}

func (l *listing) flush() {
	if l.more > mostAlike {
		l.step.Rows[len(l.step.Rows)-1].More = l.more
	} else {
		l.step.Rows = append(l.step.Rows, l.alike...)
	}
	l.alike, l.more = l.alike[:0], 0
}

// likeness returns the fields of a chunk that a listing shows beside its place.
func likeness(c alloc.Chunk) alloc.Chunk {
	return alloc.Chunk{Size: c.Size, Requested: c.Requested, State: c.State, Class: c.Class, Pool: c.Pool}
}
