package propstest

import (
	"errors"
	"testing"

	"github.com/vramyard/vramyard/props"
)

// fuzzSeeds are where a fuzzer starts: a little of everything.
var fuzzSeeds = []string{
	"a 1\na 256\nf 0\nbadfree freed 0\na 255\nbadfree inside 0\nf 1\nf 0\n",
	"a 4096 align=512\na 65536 stream=1 hint=high\ntrim\nf 0\ntrim\nclear\na 0\n",
	"fault 1\na 1048576\na 1048577\nf 1\nfrontier 2\na 300 before=1\nbadfree null\nbadfree foreign 2\n",
	"a 18446744073709551615\na 1 align=3\na 1099511627776\nf 0\n",
}

const longestFuzz = 400

// Fuzz generates sequences of operations for the subject by Go's fuzzer. Its inputs are
// lines of text, so that a corpus can be read and written by hand; lines that cannot be
// parsed are skipped.
func Fuzz(f *testing.F, s props.Subject) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { requireHolds(t, s.Name, text, recordOf(s)) })
}

// FuzzEach generates a sequence of operations by Go's fuzzer, which also chooses the subject that
// runs it: alone against the model, as [Fuzz] does, and against itself under changes that
// must not matter, as [RunMetamorphic] does. Inputs are the number of the subject, counted
// around, and lines of text.
func FuzzEach(f *testing.F, subjects ...props.Subject) {
	for _, seed := range fuzzSeeds {
		for i := range subjects {
			f.Add(byte(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		s := subjects[int(which)%len(subjects)]
		requireHolds(t, s.Name, text, recordOf(s), func(seq props.Sequence) error { return props.Relate(s, seq) })
	})
}

// FuzzDifferential lets Go's fuzzer generate sequences of operations, on which the subjects
// must agree, as in [RunDifferential].
func FuzzDifferential(f *testing.F, subjects ...props.Subject) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		requireHolds(t, "differential", text, func(seq props.Sequence) error { return props.Agree(subjects, seq) })
	})
}

func recordOf(s props.Subject) func(props.Sequence) error {
	return func(seq props.Sequence) error {
		_, err := props.TraceOf(s, seq)
		return err
	}
}

// requireHolds parses and runs a sequence, as far as it goes, and fails the
// test with a smaller one if it breaks an invariant.
func requireHolds(t *testing.T, name, text string, checks ...func(props.Sequence) error) {
	t.Helper()
	seq, _ := props.ParseSequence(text) // as far as it goes
	seq = seq[:min(len(seq), longestFuzz)]
	run := func(seq props.Sequence) error {
		for _, check := range checks {
			if err := check(seq); err != nil {
				return err
			}
		}
		return nil
	}
	err := run(seq)
	if err == nil {
		return
	}
	first, ok := errors.AsType[*props.Violation](err)
	if !ok {
		t.Fatalf("%s: %v", name, err)
	}
	small := props.Shrink(seq, 2000, func(c props.Sequence) bool {
		v, ok := errors.AsType[*props.Violation](run(c))
		return ok && v.Number == first.Number
	})
	t.Fatalf("%s: %v\nshrunk to\n%s", name, run(small), small.Lines())
}
