package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vramyard/vramyard/strategies"
)

// testLine is a line of "go test -v": a test that begins or continues, its result, or its output.
var testLine = regexp.MustCompile(
	`^(?:=== (?:RUN|NAME|CONT)\s+(\S+)|\s*--- (PASS|FAIL|SKIP): (\S+)|\s+\S+\.go:\d+: (.*))`)

// readSuite reads the output of the suite. A skipped test prints the reason before its end.
func readSuite(text string) (found *Suite, whole bool) {
	found = &Suite{Left: []string{}}
	said, now := map[string]string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		m := testLine.FindStringSubmatch(line)
		switch {
		case m == nil:
		case m[1] != "":
			now = m[1]
		case m[4] != "":
			said[now] = m[4]
		case m[2] == "PASS":
			found.Passed++
			whole = whole || m[3] == deviceTest
		case m[2] == "FAIL":
			found.Failed++
		case m[2] == "SKIP":
			found.Left = append(found.Left, m[3]+colon(said[m[3]]))
		}
	}
	return found, whole
}

// deviceTest is the test that runs the suite on a card.
const deviceTest = "TestOnTheGPU"

func (s *session) suite(ctx context.Context) (State, string) {
	deadline, _ := ctx.Deadline()
	// The test stops itself before its time limit, and reports its position.
	text, err := s.program(ctx, "suite", s.file("cuda.test"), "-test.run", "^"+deviceTest+"$", "-test.v",
		"-test.timeout", (time.Until(deadline) * 9 / 10).String())
	found, whole := readSuite(text)
	s.result.Suite = found
	switch {
	case strings.Contains(text, "panic: test timed out"):
		return Late, "its time is over"
	case err != nil:
		return ended(err)
	case !whole:
		return Failed, deviceTest + " did not run" + colon(strings.Join(found.Left, ", "))
	}
	return Held, ""
}

func (s *session) timing(ctx context.Context) (State, string) {
	deadline, _ := ctx.Deadline()
	self, err := os.Executable()
	if err != nil {
		return ended(err)
	}
	path := filepath.Join(s.out, "logs", "timing.json")
	_, err = s.program(ctx, "timing", self, timeCommand, "-out", path, "-budget", (time.Until(deadline) * 7 / 10).String(),
		"-largest", strconv.FormatUint(uint64(s.largest), 10))
	if text, unread := os.ReadFile(path); unread == nil { // figures timed before an error stay valid
		var t Timing
		if unread := json.Unmarshal(text, &t); unread != nil {
			return Failed, unread.Error()
		}
		s.result.Timing = &t
	}
	return ended(err)
}

// firstTests is the number of sequences for each strategy in the first round; each further round
// has twice as many, with new seeds.
const firstTests = 4

// conformance checks every strategy, round after round with more sequences while there is time.
func (s *session) conformance(ctx context.Context) (State, string) {
	deadline, _ := ctx.Deadline()
	names := strategies.All().Names()
	all := make([]Checked, len(names))
	took := make([]time.Duration, len(names))
	for i, name := range names {
		all[i] = Checked{Strategy: name, State: Late, Reason: "its time is over"}
	}
	s.result.Conformance = all
	seed := 1
	for tests := min(firstTests, s.tests); seed <= s.tests; tests = min(2*tests, s.tests+1-seed) {
		ran := false
		for i, name := range names {
			c := &all[i]
			first := seed == 1
			// A round takes about twice as long as the previous one, which had half of its sequences.
			if !first && (c.State == Failed || time.Until(deadline) < 3*took[i]) {
				continue
			}
			start := time.Now()
			_, err := s.program(ctx, "conformance", s.file("vramyard"), "check", "--device", "cuda:0", "--strategies", name,
				"--tests", strconv.Itoa(tests), "--ops", "60", "--seed", strconv.Itoa(seed), "--out", filepath.Join(s.out, "logs"))
			took[i] = time.Since(start)
			state, reason := ended(err)
			switch {
			case state == Held:
				c.State, c.Reason, c.Sequences, ran = Held, "", c.Sequences+tests, true
			case state == Failed || first:
				c.State, c.Reason = state, oneLine(reason)
			}
		}
		seed += tests
		if !ran || ctx.Err() != nil {
			break
		}
	}
	return summed("strategies", len(all), func(i int) (string, State, string) {
		return all[i].Strategy, all[i].State, all[i].Reason
	})
}

// summed returns the state of a part with several steps: failed if one failed, else late if
// one was late.
func summed(what string, n int, of func(int) (name string, s State, reason string)) (State, string) {
	worst, first := Held, ""
	count := map[State]int{}
	for i := range n {
		name, state, reason := of(i)
		count[state]++
		if state == Failed && worst != Failed || state == Late && worst == Held {
			worst, first = state, name+colon(reason)
		}
	}
	if worst == Held {
		return Held, ""
	}
	return worst, fmt.Sprintf("%d of %d %s %s, first %s", count[worst], n, what, worst, first)
}

// poisoned is the number of steps of a training with poison.
const poisoned = 5

// training trains a model on PyTorch's own allocator, and on each strategy with and without poison.
func (s *session) training(ctx context.Context) (State, string) {
	t := &Training{Steps: s.steps}
	s.result.Training = t
	names, err := s.trainer(ctx, "--list")
	if err != nil {
		return ended(err)
	}
	native, err := s.trainer(ctx, "--steps", strconv.Itoa(s.steps))
	if err != nil {
		return ended(err)
	}
	if len(native) != s.steps {
		return Failed, fmt.Sprintf("PyTorch's own allocator: %d losses for %d steps", len(native), s.steps)
	}
	t.First, t.Last = native[0], native[len(native)-1]
	again, err := s.trainer(ctx, "--steps", strconv.Itoa(s.steps))
	if err != nil {
		return ended(err)
	}
	if t.Repeat = slices.Equal(native, again); !t.Repeat {
		return Failed, "PyTorch's own allocator does not give the same losses twice, so that nothing can be compared"
	}
	for _, poison := range []bool{false, true} {
		for _, name := range names {
			r := Run{Strategy: name, Poison: poison, Steps: s.steps}
			if poison {
				r.Steps = min(poisoned, s.steps)
			}
			r.State, r.Reason = s.train(ctx, &r, native)
			r.Reason = oneLine(r.Reason)
			t.Runs = append(t.Runs, r)
		}
	}
	return summed("trainings", len(t.Runs), func(i int) (string, State, string) {
		return t.Runs[i].label(), t.Runs[i].State, t.Runs[i].Reason
	})
}

func (r *Run) label() string {
	if r.Poison {
		return r.Strategy + " with poison"
	}
	return r.Strategy
}

func (s *session) trainer(ctx context.Context, args ...string) ([]string, error) {
	text, err := s.program(ctx, "training", s.python, append([]string{s.file(trainScript)}, args...)...)
	return strings.Fields(text), err
}

// train trains on one strategy and fills in the outcome.
func (s *session) train(ctx context.Context, r *Run, native []string) (State, string) {
	path := filepath.Join(s.out, "logs", "training-stats.json")
	_ = os.Remove(path) // of the run before: there may be none
	args := []string{"--strategy", r.Strategy, "--steps", strconv.Itoa(r.Steps), "--stats", path}
	if r.Poison {
		args = append(args, "--poison")
	}
	got, err := s.trainer(ctx, args...)
	if err != nil {
		return ended(err)
	}
	if err := r.read(path); err != nil {
		return ended(err)
	}
	switch {
	case !slices.Equal(got, native[:r.Steps]):
		i := 0
		for i < len(got) && i < r.Steps && got[i] == native[i] {
			i++
		}
		return Failed, fmt.Sprintf("the losses differ from PyTorch's own allocator, first in step %d", i+1)
	case r.Blocks == 0:
		return Failed, "no block was asked for"
	case r.Stale != 0:
		return Failed, fmt.Sprintf("%d pieces of freed memory were written", r.Stale)
	case r.Poison && (r.Filled == 0 || r.Compared == 0 && !r.Blind):
		return Failed, "nothing was filled or looked at"
	}
	return Held, ""
}

// read fills in the figures of a run from its statistics.
func (r *Run) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var stats struct {
		Error   string
		Devices []struct {
			Allocs   uint64
			BadFrees uint64      `json:"bad_frees"`
			Peak     json.Number `json:"peak_reserved_bytes"`
			Poison   *struct {
				Filled, Compared, Violations uint64
				Blind                        bool
			}
		}
	}
	if err := json.Unmarshal(text, &stats); err != nil {
		return fmt.Errorf("statistics: %w", err)
	}
	if stats.Error != "" || len(stats.Devices) != 1 {
		return fmt.Errorf("statistics of %d GPUs%s", len(stats.Devices), colon(stats.Error))
	}
	d := stats.Devices[0]
	if d.BadFrees != 0 {
		return fmt.Errorf("%d frees of addresses that are not live", d.BadFrees)
	}
	r.Blocks = d.Allocs
	if p := d.Poison; p != nil {
		r.Filled, r.Compared, r.Stale, r.Blind = p.Filled, p.Compared, p.Violations, p.Blind
	}
	return json.Unmarshal([]byte(d.Peak), &r.Peak)
}
