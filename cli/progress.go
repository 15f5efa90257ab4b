package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/units"
)

// The intervals of the progress line: the delay before it is first drawn, the least time between
// two drawings, and the most, after which the elapsed time is updated.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressTick  = time.Second
)

// progress shows the progress of a command in one line on a terminal, and nothing elsewhere. The
// line is erased at the end. It is safe for concurrent use; nil shows nothing.
type progress struct {
	terminal *os.File

	lock    sync.Mutex
	now     stage
	begun   time.Time // of the stage
	drawn   time.Time // last; zero if there is no line
	ticking chan struct{}
}

// stage is a part of the work that has a rate.
type stage struct {
	what        string  // such as "reading x.csv"
	unit        string  // of the count; "bytes" are shown with binary units
	done, total int64   // total is 0 if it is not known
	events      int64   // replayed so far; 0 if they are not counted
	share       float64 // estimated fraction of the work done before the first item is complete; 0 if unknown
	quiet       bool    // nothing is drawn before the first update
}

// newProgress returns a progress on w, or nil if w is not a terminal with cursor control.
func newProgress(w io.Writer) *progress {
	if f := lively(w); f != nil {
		return &progress{terminal: f}
	}
	return nil
}

// progressKey finds the progress in the context of a command.
type progressKey struct{}

// begin begins a stage of a command, which replaces the previous one. It ends when the next one
// begins, when something is written to standard output, or with the command.
func begin(cmd *cobra.Command, s stage) *progress {
	p, _ := cmd.Context().Value(progressKey{}).(*progress)
	p.begin(s)
	return p
}

// withProgress returns a context in which commands find a progress. A signal wipes its line.
func withProgress(ctx context.Context, p *progress) context.Context {
	if i, ok := ctx.Value(interruptsKey{}).(*interrupts); ok {
		i.wipes(p)
	}
	return context.WithValue(ctx, progressKey{}, p)
}

func (p *progress) begin(s stage) {
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.end()
	p.now, p.begun = s, time.Now()
	if s.quiet {
		return
	}
	done := make(chan struct{})
	p.ticking = done
	go func() {
		for t := time.NewTicker(progressTick); ; {
			select {
			case <-done:
				t.Stop()
				return
			case <-t.C:
				p.change(func(*stage) {})
			}
		}
	}()
}

// phase shows the progress of a named stage, which replaces the previous one. A stage
// without a known total is not shown.
func (p *progress) phase(what string, done, known int) {
	if p == nil || known == 0 {
		return
	}
	p.lock.Lock()
	begun := p.now.what == what
	p.lock.Unlock()
	if !begun {
		p.begin(stage{what: what})
	}
	p.reached(int64(done), int64(known))
}

func (p *progress) reached(done, total int64) {
	p.change(func(s *stage) { s.done, s.total = done, total })
}

func (p *progress) step() { p.change(func(s *stage) { s.done++ }) }

// estimated sets the estimated fraction of the work done, 0 to 1.
func (p *progress) estimated(share float64) { p.change(func(s *stage) { s.share = share }) }

func (p *progress) replayed(events int) { p.change(func(s *stage) { s.events += int64(events) }) }

// change updates the stage, and draws it if it is due.
func (p *progress) change(f func(*stage)) {
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.now == (stage{}) {
		return // the stage has ended
	}
	f(&p.now)
	now := time.Now()
	if now.Sub(p.begun) < progressAfter || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn = now
	columns, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil || columns <= 0 {
		columns = 80
	}
	// The last column stays empty: some terminals begin a new line behind it.
	fmt.Fprintf(p.terminal, "\r%s\x1b[K", text.Snip(p.now.line(now.Sub(p.begun)), columns-1, "…"))
}

func (p *progress) stop() {
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.end()
}

// interject wipes the line, with a ^C that the terminal has echoed, and calls f. The line is not
// drawn until f returns.
func (p *progress) interject(f func()) {
	if p != nil {
		p.lock.Lock()
		defer p.lock.Unlock()
		fmt.Fprint(p.terminal, wipe)
		p.drawn = time.Time{}
	}
	f()
}

// end ends the stage and wipes its line. The caller holds the lock.
func (p *progress) end() {
	if p.ticking != nil {
		close(p.ticking)
		p.ticking = nil
	}
	if !p.drawn.IsZero() {
		fmt.Fprint(p.terminal, wipe)
	}
	p.now, p.drawn = stage{}, time.Time{}
}

// wipe erases the current line.
const wipe = "\r\x1b[K"

// line returns the line of the stage after some time. The remaining time comes right after the
// counts, because a narrow window cuts off the end.
func (s *stage) line(took time.Duration) string {
	parts := []string{s.what}
	if s.total > 0 || s.done > 0 {
		parts[0] = strings.TrimSpace(s.what + " " + s.count())
	}
	share := s.share
	if share == 0 && s.total > 0 {
		share = float64(min(s.done, s.total)) / float64(s.total)
	}
	if share > 0 {
		left := time.Duration(float64(took) * (1 - share) / share)
		parts = append(parts, "about "+left.Round(time.Second).String()+" left")
	} else {
		parts = append(parts, "for "+took.Round(time.Second).String())
	}
	perSecond := func(n int64) float64 { return float64(n) / max(took.Seconds(), 1e-3) }
	switch {
	case s.unit == "bytes" && s.done > 0:
		parts = append(parts, units.Bytes(device.Size(perSecond(s.done)))+"/s")
	case s.done > 0:
		parts = append(parts, rate(perSecond(s.done))+"/s")
	}
	if s.events > 0 {
		parts = append(parts, rate(perSecond(s.events))+" events/s")
	}
	return strings.Join(parts, ", ")
}

func (s *stage) count() string {
	switch {
	case s.unit == "bytes" && s.total > 0:
		return fmt.Sprintf("%d %% of %s", s.done*100/s.total, units.Bytes(device.Size(s.total)))
	case s.unit == "bytes":
		return units.Bytes(device.Size(s.done))
	case s.total > 0:
		return fmt.Sprintf("%d of %d %s", s.done, s.total, s.unit)
	}
	return fmt.Sprintf("%d %s", s.done, s.unit)
}

// rate returns a number with few digits.
func rate(x float64) string {
	switch {
	case x >= 1e7:
		return fmt.Sprintf("%.0fM", x/1e6)
	case x >= 1e6:
		return fmt.Sprintf("%.1fM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// cleared is standard output: a write to it erases the progress line.
type cleared struct {
	io.Writer
	p *progress
}

func (c cleared) Write(b []byte) (int, error) {
	c.p.stop()
	return c.Writer.Write(b)
}

// reading begins a stage for reading a file. It returns options that report the progress and
// warnings about the file.
func reading(cmd *cobra.Command, path string, o formats.Options) formats.Options {
	name := "standard input"
	if path != "-" {
		name = units.Printable(baseOf(path))
	}
	o.Warn = warnings(cmd)
	o.Watch = begin(cmd, stage{what: "reading " + name, unit: "bytes"}).reached
	return o
}

// warnings returns a function that prints a warning about a file.
func warnings(cmd *cobra.Command) func(error) {
	return func(doubt error) {
		p, _ := cmd.Context().Value(progressKey{}).(*progress)
		p.interject(func() { tell(cmd.ErrOrStderr(), "vramyard: warning: %s", oneLine(doubt)) })
	}
}

// walking begins a stage for a walk of a trace. It returns the trace with progress reports.
func walking(cmd *cobra.Command, what string, t trace.Source) trace.Source {
	p := begin(cmd, stage{what: what, unit: "events"})
	return trace.Watched(t, func(done, total int) { p.reached(int64(done), int64(total)) })
}
