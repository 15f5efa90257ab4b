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

// States writes what a strategy does on the way to a failure: for each call the call with
// its answer, the traffic with the device, and the chunks as a walk shows them afterwards,
// one a line. The call after which the invariant broke is marked. It makes the calls anew, so
// it works for a strategy that panics in the end: what it shows is all that was before.
//
// The subject must be the one that failed. States fails if w does, and if the strategy keeps
// every invariant this time, after it has written the calls. It returns what it has written, step
// by step; the last one broke the invariant.
func States(w io.Writer, s props.Subject, f *props.Failure) ([]Step, error) {
	n := &notebook{}
	inner := s.New
	instances := 0
	s.New = func(src device.Source) (alloc.Strategy, error) {
		if instances++; instances > 2 {
			return inner(src)
		}
		p := n.page(instances == 2)
		a, err := inner(newWitness(src, p))
		if err != nil {
			p.write("  not built: %v\n", err)
			return nil, err
		}
		return &spy{Forwarder: alloc.Forward(a, nil), page: p, strategy: a}, nil
	}
	err := props.Repeat(s, f.Sequence, f.Plan)
	var v *props.Violation
	if !errors.As(err, &v) {
		v = &props.Violation{Number: f.Violation.Number, Detail: "kept this time: the strategy depends on more than its calls"}
	}
	steps := n.steps()
	if _, werr := io.WriteString(w, textOf(steps, v)); werr != nil {
		return nil, werr
	}
	if err == nil {
		return steps, fmt.Errorf("%s: %v was not broken again", f.Subject, f.Violation.Number)
	}
	return steps, nil
}

// Step is a call on the way to a failure.
type Step struct {
	Call   string        // the call with its answer
	Notes  string        // lines: what was asked of the device, and the chunks afterwards
	Chunks []alloc.Chunk // the chunks afterwards, 4096 of them at most; none where they were not looked at
}

// notebook is what was noted of the two instances that a sequence is run on. The second is
// given the same calls but those that free everything in the end, so only its end is news.
type notebook struct {
	pages [2]page
}

// page is what was noted of one instance.
type page struct {
	steps  []Step
	closed int // the first of the steps at closing, 0 if there is none
}

// page returns the page of an instance.
func (n *notebook) page(second bool) *page {
	p := &n.pages[0]
	if second {
		p = &n.pages[1]
	}
	p.begin("build the strategy")
	return p
}

// steps returns the steps of both pages.
func (n *notebook) steps() []Step {
	steps := n.pages[0].steps
	if second := &n.pages[1]; second.closed != 0 {
		last := second.steps[second.closed-1]
		last.Notes = last.Call + "\n" + last.Notes
		last.Call = "a second instance, all calls but those that freed everything"
		steps = append(steps, last)
		steps = append(steps, second.steps[second.closed:]...)
	}
	return steps
}

// textOf returns steps as text. The last step is the one that broke the invariant.
func textOf(steps []Step, v *props.Violation) string {
	var b strings.Builder
	for i, s := range steps {
		mark := " "
		if i == len(steps)-1 {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %2d  %s\n%s", mark, i, s.Call, s.Notes)
	}
	fmt.Fprintf(&b, "> %v\n", v)
	return b.String()
}

// begin starts a step.
func (p *page) begin(format string, args ...any) {
	p.steps = append(p.steps, Step{Call: fmt.Sprintf(format, args...)})
}

// now returns the present step.
func (p *page) now() *Step { return &p.steps[len(p.steps)-1] }

// answer adds the answer to the call of the present step.
func (p *page) answer(text string) { p.now().Call += ": " + text }

// write adds lines to the present step.
func (p *page) write(format string, args ...any) { p.now().Notes += fmt.Sprintf(format, args...) }

// orDone returns an error as text.
func orDone(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// spy is a strategy that notes its calls, their answers and the walk after each.
type spy struct {
	alloc.Forwarder
	page     *page
	strategy alloc.Strategy
}

// Alloc implements [alloc.Allocator].
func (s *spy) Alloc(r alloc.Request) (alloc.Block, error) {
	s.page.begin("%s", requestText(r))
	defer s.panicked()
	b, err := s.Forwarder.Alloc(r)
	if err != nil {
		s.done(err)
	} else {
		s.look(fmt.Sprintf("%v+%d", b.Addr, uint64(b.Size)))
	}
	return b, err
}

// requestText returns a request as a line of a trace.
func requestText(r alloc.Request) string {
	op := props.Op{Kind: props.OpAlloc, Size: r.Size, Align: r.Align, Stream: r.Stream, Hint: r.Hint, Before: r.Before}
	return op.String() + fmt.Sprintf(" (allocation %d)", r.Tag)
}

// Free implements [alloc.Allocator].
func (s *spy) Free(a device.Addr) error {
	s.page.begin("f %v", a)
	defer s.panicked()
	err := s.Forwarder.Free(a)
	s.done(err)
	return err
}

// Trim implements [alloc.Trimmer].
func (s *spy) Trim() (device.Size, error) {
	s.page.begin("trim")
	defer s.panicked()
	n, err := s.Forwarder.Trim()
	if err != nil {
		s.done(err)
	} else {
		s.look(fmt.Sprintf("%d bytes", uint64(n)))
	}
	return n, err
}

// SetFrontier implements [alloc.Frontier].
func (s *spy) SetFrontier(count uint64) {
	s.page.begin("frontier %d", count)
	defer s.panicked()
	s.Forwarder.SetFrontier(count)
	s.done(nil)
}

// ClearStats implements [alloc.Clearer].
func (s *spy) ClearStats() {
	s.page.begin("clear")
	defer s.panicked()
	s.Forwarder.ClearStats()
	s.done(nil)
}

// RecordStream implements [alloc.StreamRecorder].
func (s *spy) RecordStream(a device.Addr, on device.Stream) error {
	s.page.begin("use %v by stream %d", a, uint64(on))
	defer s.panicked()
	err := s.Forwarder.RecordStream(a, on)
	s.done(err)
	return err
}

// Poll implements [alloc.Poller].
func (s *spy) Poll() (device.Size, error) {
	s.page.begin("poll")
	defer s.panicked()
	n, err := s.Forwarder.Poll()
	if err != nil {
		s.done(err)
	} else {
		s.look(fmt.Sprintf("%d bytes", uint64(n)))
	}
	return n, err
}

// BeginPool implements [alloc.PrivatePools].
func (s *spy) BeginPool(id alloc.PoolID, on device.Stream) error {
	return s.pool(props.Op{Kind: props.OpPoolBegin, Pool: id, Stream: on}, func() error { return s.Forwarder.BeginPool(id, on) })
}

// EndPool implements [alloc.PrivatePools].
func (s *spy) EndPool(id alloc.PoolID) error {
	return s.pool(props.Op{Kind: props.OpPoolEnd, Pool: id}, func() error { return s.Forwarder.EndPool(id) })
}

// ReleasePool implements [alloc.PrivatePools].
func (s *spy) ReleasePool(id alloc.PoolID) error {
	return s.pool(props.Op{Kind: props.OpPoolRelease, Pool: id}, func() error { return s.Forwarder.ReleasePool(id) })
}

// pool makes a call about a private pool.
func (s *spy) pool(o props.Op, call func() error) error {
	s.page.begin("%v", o)
	defer s.panicked()
	err := call()
	s.done(err)
	return err
}

// Close implements [alloc.Strategy].
func (s *spy) Close() error {
	if s.page.closed == 0 {
		s.page.closed = len(s.page.steps)
	}
	s.page.begin("close")
	defer s.panicked()
	err := s.Forwarder.Close()
	s.done(err)
	return err
}

// done notes an answer that is an error or nothing, and the walk after it.
func (s *spy) done(err error) { s.look(orDone(err)) }

// panicked notes a panic of the call and lets it go on. It is to be deferred.
func (s *spy) panicked() {
	if p := recover(); p != nil {
		s.page.answer(fmt.Sprintf("panic: %v", p))
		panic(p)
	}
}

// look notes an answer and the walk after it. A strategy that broke may panic while it is
// looked at, or show chunks for ever; the page then says so, and the calls go on.
func (s *spy) look(answer string) {
	s.page.answer(answer)
	defer func() {
		if p := recover(); p != nil {
			s.page.write("        walk: panic: %v\n", p)
		}
	}()
	l := listing{page: s.page}
	s.strategy.Walk(func(c alloc.Chunk) bool {
		if now := s.page.now(); len(now.Chunks) < mostChunks {
			now.Chunks = append(now.Chunks, c)
		}
		return l.chunk(c)
	})
	l.flush()
}

// listing writes chunks, one a line, and many in a row that look alike as two lines.
type listing struct {
	page  *page
	last  alloc.Chunk   // the last chunk written
	alike []alloc.Chunk // the first few after it that look like it
	more  int           // how many there are of those
	lines int
}

const (
	mostChunks = 4096 // of a step: a picture has no room for more

	mostLines = 500 // of a listing: a person reads no more
	mostAlike = 3   // chunks after one that look like it and are written all the same
)

// chunk adds a chunk and reports whether more are wanted.
func (l *listing) chunk(c alloc.Chunk) bool {
	if l.lines > 0 && c.Region == l.last.Region && likeness(c) == likeness(l.last) {
		if l.more++; l.more <= mostAlike {
			l.alike = append(l.alike, c)
		}
		return l.more < 1<<20
	}
	l.flush()
	if l.lines >= mostLines {
		l.page.write("        and so on\n")
		return false
	}
	if l.lines == 0 || c.Region != l.last.Region {
		l.page.write("        region %v\n        %12s %12s %-8s %12s %6s\n", c.Region, "offset", "size", "state", "requested", "class")
	}
	l.line(c)
	return true
}

// line writes a chunk.
func (l *listing) line(c alloc.Chunk) {
	l.lines++
	l.last = c
	l.page.write("        %12d %12d %-8v %12d %6d", int64(c.Addr-c.Region), uint64(c.Size), c.State, uint64(c.Requested), c.Class)
	if c.Pool != 0 {
		l.page.write("  pool %d", uint64(c.Pool))
	}
	l.page.write("\n")
}

// flush writes what was kept back.
func (l *listing) flush() {
	if l.more > mostAlike {
		l.page.write("        %12s and %d more like it\n", "", l.more)
	} else {
		for _, c := range l.alike {
			l.line(c)
		}
	}
	l.alike, l.more = l.alike[:0], 0
}

// likeness is what a listing shows of a chunk besides its place.
func likeness(c alloc.Chunk) alloc.Chunk {
	return alloc.Chunk{Size: c.Size, Requested: c.Requested, State: c.State, Class: c.Class, Pool: c.Pool}
}
