package propstest

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

var (
	flagTests = flag.Int("props.tests", 1000,
		"sequences of operations for each subject; many subjects share them, each has a quarter at least, as with -short")
	flagOps  = flag.Int("props.ops", 100, "operations in a sequence")
	flagSeed = flag.Int64("props.seed", 1, "seed of the first sequence; each next one has the next seed")
)

// few is the number of subjects that run all the sequences of the flags. More subjects share as
// many as these run, because most of their code is the same.
const few = 4

// quarter is the least part of the sequences that any subject runs.
const quarter = 4

// options returns the options of the flags for one of a number of subjects, with one in share of
// the sequences.
func options(share, subjects int) props.Options {
	n := *flagTests
	if testing.Short() {
		n /= quarter
	} else {
		n = max(n*few/max(subjects, few), n/quarter)
	}
	return props.Options{Sequences: max(n/share, 1), Operations: *flagOps, Seed: *flagSeed}
}

// Run verifies every subject: bare, with the device refusing one of its calls, each time another,
// by the claims of its configuration and of its metadata, with blocks that are filled and compared,
// inside each wrapper of package alloc, and called by many goroutines at once: behind a lock, or
// without one if it is [power.Concurrent] (see [linear.Verify]). Subjects run in parallel. Up to
// four run all the sequences of the flags; more subjects share the sequences of four, and each runs
// a quarter at least. If the environment has no GOGC it is 1000 during the run: the live heap is
// small, and collecting it at every 4 MiB takes a tenth of the time.
func Run(t *testing.T, subjects ...props.Subject) {
	t.Helper()
	if os.Getenv("GOGC") == "" {
		percent := debug.SetGCPercent(1000)
		t.Cleanup(func() { debug.SetGCPercent(percent) })
	}
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			// The tests that look at the heap must not run in parallel, so they come first.
			t.Run("TakesNothingFromTheHeap", func(t *testing.T) { AllocsZero(t, s) })
			t.Run("HoldsTheMetadataItClaims", func(t *testing.T) {
				guarded(t, func(func()) {
					if err := props.Metadata(s); err != nil {
						t.Error(err)
					}
				})
			})
			t.Parallel()
			runOne(t, s, len(subjects))
		})
	}
}

// RunMetamorphic checks the relations between two runs of one strategy for every subject,
// with a tenth of the sequences that the flags ask for, since each runs on five instances.
// Subjects run in parallel.
func RunMetamorphic(t *testing.T, subjects ...props.Subject) {
	t.Helper()
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r, err := props.Metamorphic(s, options(10, 1))
			report(t, r, err, false)
		})
	}
}

// RunDifferential checks that the subjects differ in placement only, with one of share sequences
// that the flags ask for.
func RunDifferential(t *testing.T, share int, subjects ...props.Subject) {
	t.Helper()
	r, err := props.Differential(subjects, options(share, 1))
	report(t, r, err, false)
}

// RunIdentical checks that two subjects place, refuse and count alike, with half of the sequences
// that the flags ask for.
func RunIdentical(t *testing.T, first, other props.Subject) {
	t.Helper()
	r, err := props.Identical(first, other, options(2, 1))
	report(t, r, err, false)
}

// enough is how many sequences have to show that an exception is needed.
const enough = 250

// runOne runs the subtests of one of a number of subjects.
func runOne(t *testing.T, s props.Subject, subjects int) {
	if !t.Run("KeepsEveryInvariant", func(t *testing.T) {
		r := Verify(t, s, options(1, subjects))
		for _, e := range s.Promises.Except {
			n, ok := props.ParseNumber(e.Invariant)
			if !ok {
				t.Errorf("exception of %q: there is no such invariant", e.Invariant)
			}
			if n >= props.IAgreement && n <= props.ITranslation || n == props.IIdle || n == props.IBounded ||
				n >= props.IPreallocated {
				continue // about several runs, longer ones or claims, which other tests look at
			}
			if r.Excepted[n] == 0 && r.Sequences >= enough && !testing.Short() {
				t.Errorf("exception of %v (%s) was not needed in %d sequences: %s", n, n.Name(), r.Sequences, e.Reason)
			}
		}
	}) {
		return // the others would repeat the same failure
	}
	if s.Learns() {
		s = s.Misled() // also in what follows
		if !t.Run("KeepsEveryInvariantMisled", func(t *testing.T) { Verify(t, s, options(1, subjects)) }) {
			return
		}
	}
	t.Run("SurvivesEveryDeviceFault", func(t *testing.T) {
		o := options(40, subjects)
		o.Faults = 20 // a strategy that marks streams makes ten times as many calls as it grants blocks
		r, err := props.VerifyFaults(s, o)
		report(t, r, err, true)
	})
	if s.Setup.Config != nil {
		t.Run("KeepsItsClaims", func(t *testing.T) {
			r, err := props.Claims(s, options(40, subjects))
			report(t, r, err, false)
		})
	}
	t.Run("KeepsContents", func(t *testing.T) { Verify(t, s.Filled(), options(20, subjects)) })
	for _, w := range wrappers {
		t.Run("KeepsEveryInvariantInside"+w.name, func(t *testing.T) {
			inside := s.Wrapped(w.name, w.wrap)
			inside.Promises.Except = append(slices.Clone(inside.Promises.Except), w.except...)
			inside.Promises.ExactPlacer = inside.Promises.ExactPlacer && !w.tries
			Verify(t, inside, options(20, subjects))
		})
	}
	if concurrent(t, s) {
		t.Run("ServesManyCallersAtOnce", func(t *testing.T) { serveConcurrently(t, s) })
		return
	}
	t.Run("ServesManyCallersBehindLock", func(t *testing.T) {
		guarded(t, func(beat func()) { serveMany(t, s, beat) })
	})
}

type wrapper struct {
	name   string
	wrap   func(alloc.Strategy) (alloc.Strategy, error)
	except []promise.Exception // invariants that it breaks by design
	tries  bool                // refused requests are retried, and the retry may be granted
}

// wide is a limit that no sequence reaches.
const wide = ^device.Size(0)

var wrappers = []wrapper{
	{name: "Locked", wrap: wrap.Locked},
	{name: "Limited", wrap: func(s alloc.Strategy) (alloc.Strategy, error) { return wrap.Limited(s, wide) },
		except: []promise.Exception{
			{Invariant: props.IRequestAnswer.String(), Reason: "above the limit it does not know which alignments the " +
				"strategy honours"},
			{Invariant: props.IRecord.String(), Reason: "for its own refusals it counts slack as free, because telling them " +
				"apart takes a walk"},
		}},
	{name: "Recorded", wrap: func(s alloc.Strategy) (alloc.Strategy, error) {
		return wrap.Recorded(s, func(wrap.Operation) {})
	}},
	{name: "Retrying", wrap: func(s alloc.Strategy) (alloc.Strategy, error) {
		l, err := wrap.Locked(s)
		if err != nil {
			return nil, err
		}
		return wrap.Retrying(l, 0) // nothing is ever freed while a call waits here
	}, tries: true, except: []promise.Exception{
		{Invariant: props.ICounters.String(), Reason: "every try counts as out of memory"},
		{Invariant: props.ICounted.String(), Reason: "every try counts as out of memory"},
		{Invariant: props.IHistory.String(), Reason: "every attempt is reported as out of memory"},
	}},
}

// Verify verifies one subject, logs what it did and returns it. If an invariant broke, the
// test ends with all that is known of the failure.
func Verify(t testing.TB, s props.Subject, o props.Options) props.Result {
	t.Helper()
	r, err := props.Verify(s, o)
	report(t, r, err, true)
	return r
}

// report logs the counts, or fails the test and leaves the trace in a file. Relations need no
// bad requests.
func report(t testing.TB, r props.Result, err error, mistakes bool) {
	t.Helper()
	if err == nil {
		t.Log(r)
		if r.Grants == 0 || r.Frees == 0 || mistakes && r.Mistakes == 0 || r.BadFrees == 0 {
			t.Errorf("the sequences did not reach everything: %v", r)
		}
		return
	}
	var f *props.Failure
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	if f.Violation.Stack != nil {
		t.Logf("%s", f.Violation.Stack)
	}
	path, writeErr := writeTrace(t, f.Subject, f.Violation, f.WriteTrace)
	if writeErr != nil {
		t.Errorf("the trace could not be written: %v", writeErr)
	}
	t.Fatalf("%v\ntrace: %s\nagain: go test -run '%s' -props.seed=%d -props.tests=1 -props.ops=%d",
		f, path, t.Name(), f.Seed, f.Operations)
}

// unfit are the characters of a test's name that a file's name should not have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// writeTrace writes the trace of a failure to the test's artifact directory: the directory of
// -artifacts, or another that stays after the test.
func writeTrace(t testing.TB, subject string, v *props.Violation, write func(io.Writer) error) (path string,
	err error) {
	dir := t.ArtifactDir()
	if !artifactsKept() {
		if dir, err = os.MkdirTemp("", "props-"); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, unfit.ReplaceAllString(subject, "-")+"-"+v.Number.String()+".trace")
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(write(out), out.Close())
}

// artifactsKept reports whether the artifact directory outlives the test.
func artifactsKept() bool {
	f := flag.Lookup("test.artifacts")
	return f != nil && f.Value.String() == "true"
}
