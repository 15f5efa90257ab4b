package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/fileio"
)

// errParts means that not every part ran and passed.
var errParts = errors.New("not every part ran and held")

// options are the options of a run.
type options struct {
	bundle, out, python string
	limit               time.Duration
	largest             device.Size
	steps, tests        int
	log                 io.Writer
	now                 func() time.Time
	environment         []string // added to the environment of the programs
}

// session is a run under way.
type session struct {
	options
	manifest *manifest
	result   Result
	start    time.Time
}

// part is one part of a run.
type part struct {
	name  string
	share int // of the time, in hundredths
	// lacks returns what prevents the part, or "".
	lacks func(*session) string
	// run runs the part. The reason is one line, "" if it passed.
	run func(*session, context.Context) (State, string)
}

// parts returns the parts in order of importance.
func parts() []part {
	return []part{
		{"suite", 12, (*session).lacksGPU, (*session).suite},
		{"timing", 18, (*session).lacksGPU, (*session).timing},
		{"conformance", 20, (*session).lacksGPU, (*session).conformance},
		{"training", 36, (*session).lacksTraining, (*session).training},
		{"snapshots", 14, (*session).lacksTorch, (*session).snapshots},
	}
}

// run runs all parts and writes the result after each. A failure in one part is recorded and does
// not end the run.
func run(ctx context.Context, o options) error {
	s := &session{options: o, start: o.now()}
	if err := s.prepare(); err != nil {
		return err
	}
	s.look(ctx)
	share := 0
	var unsaved error
	for _, p := range parts() {
		share += p.share
		s.result.Parts = append(s.result.Parts, s.one(ctx, p, s.start.Add(o.limit*time.Duration(share)/100)))
		s.result.Seconds = seconds(o.now().Sub(s.start))
		if err := s.result.save(filepath.Join(o.out, "result.json")); err != nil {
			unsaved = err // a later write may succeed
			fmt.Fprintln(o.log, "cannot be written:", err)
			continue
		}
		unsaved = nil
	}
	if unsaved == nil {
		unsaved = fileio.Write(filepath.Join(o.out, "result.md"), nil, s.result.markdown)
	}
	s.conclude(unsaved)
	if unsaved != nil || !s.result.held() {
		return errParts
	}
	return nil
}

// prepare reads the bundle and creates the output folder.
func (s *session) prepare() (err error) {
	if s.bundle == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		s.bundle = filepath.Dir(self)
	}
	if s.bundle, err = filepath.Abs(s.bundle); err != nil {
		return err
	}
	if s.out, err = filepath.Abs(s.out); err != nil {
		return err
	}
	if s.manifest, err = readManifest(s.bundle); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.out, "logs"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"result.json", "result.md"} {
		if _, err := os.Stat(filepath.Join(s.out, name)); err == nil {
			return fmt.Errorf("%s: there is a %s of another run: want a folder of its own", s.out, name)
		}
	}
	s.result = Result{Schema: schema, Started: s.start.UTC().Format(time.RFC3339), Commit: s.manifest.Commit}
	return nil
}

// one runs one part within its time limit.
func (s *session) one(ctx context.Context, p part, deadline time.Time) Part {
	began := s.now()
	if err := ctx.Err(); err != nil {
		return Part{Name: p.name, State: Skipped, Reason: "interrupted"}
	}
	if lacks := p.lacks(s); lacks != "" {
		fmt.Fprintf(s.log, "%-12s skipped: %s\n", p.name, lacks)
		return Part{Name: p.name, State: Skipped, Reason: lacks}
	}
	fmt.Fprintf(s.log, "%-12s at most %.0f s ...\n", p.name, seconds(deadline.Sub(began)))
	inner, stop := context.WithDeadline(ctx, deadline)
	defer stop()
	state, reason := p.run(s, inner)
	if ctx.Err() != nil {
		state, reason = Late, "interrupted"
	}
	done := Part{Name: p.name, State: state, Reason: oneLine(reason), Seconds: seconds(s.now().Sub(began))}
	fmt.Fprintf(s.log, "%-12s %s after %.1f s%s\n", p.name, state, done.Seconds, colon(done.Reason))
	return done
}

func (s *session) conclude(unsaved error) {
	fmt.Fprintln(s.log)
	byState := map[State][]string{}
	for _, p := range s.result.Parts {
		byState[p.State] = append(byState[p.State], p.Name)
		fmt.Fprintf(s.log, "%-12s %-8s%6.1f s  %s\n", p.Name, p.State, p.Seconds, p.Reason)
	}
	fmt.Fprintf(s.log, "\n%d of %d parts held, in %.0f s", len(byState[Held]), len(s.result.Parts), s.result.Seconds)
	for _, state := range []State{Failed, Late, Skipped} {
		if names := byState[state]; len(names) > 0 {
			fmt.Fprintf(s.log, "; %s: %s", state, strings.Join(names, ", "))
		}
	}
	fmt.Fprintln(s.log)
	if unsaved != nil {
		fmt.Fprintln(s.log, "the result is not complete:", oneLine(unsaved.Error()))
		return
	}
	fmt.Fprintln(s.log, "results:", filepath.Join(s.out, "result.md"), "and result.json; the output of the "+
		"programs is in logs")
	if s.result.StandIn {
		fmt.Fprintln(s.log, "the driver is the stand-in of the tests: nothing here was measured on a card")
	}
}

// program runs a program, of the bundle or not, and writes its output to the logs. The
// error names its exit status and its last line; text is its standard output.
func (s *session) program(ctx context.Context, log, name string, args ...string) (text string, err error) {
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = 3 * time.Second // for pipes that children hold open
	c.Env = append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), s.environment...)
	c.Dir = s.out
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	kept := s.keep(log, append([]string{name}, args...), out.Bytes(), errs.Bytes())
	switch {
	case ctx.Err() != nil:
		return out.String(), ctx.Err()
	case err != nil:
		err = fmt.Errorf("%s: %w%s", filepath.Base(name), err, colon(lastLine(errs.String()+"\n"+lastLine(out.String()))))
		return out.String(), err
	}
	return out.String(), kept
}

// keep appends the output of a program to its log.
func (s *session) keep(log string, args []string, out, errs []byte) (err error) {
	f, err := os.OpenFile(filepath.Join(s.out, "logs", log+".txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = fmt.Fprintf(f, "$ %s\n%s%s\n", strings.Join(args, " "), out, errs)
	return err
}

// ended returns the state of a finished part.
func ended(err error) (State, string) {
	switch {
	case err == nil:
		return Held, ""
	case errors.Is(err, context.DeadlineExceeded):
		return Late, "its time is over"
	}
	return Failed, err.Error()
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// colon returns ": " and the text, or "" for an empty text.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// seconds returns a duration in seconds, to the hundredth.
func seconds(d time.Duration) float64 { return d.Round(10 * time.Millisecond).Seconds() }
