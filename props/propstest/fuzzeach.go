package propstest

import (
	"errors"
	"testing"

	"github.com/vramyard/vramyard/props"
)

// FuzzEach lets Go's fuzzer make up a sequence of operations and choose the subject that
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
		requireHolds(t, s.Name, text, func(seq props.Sequence) error {
			if _, err := props.Record(s, seq); err != nil {
				return err
			}
			return props.Relate(s, seq)
		})
	})
}

// FuzzDifferential lets Go's fuzzer make up sequences of operations, on which the subjects
// must agree, as in [RunDifferential].
func FuzzDifferential(f *testing.F, subjects ...props.Subject) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		requireHolds(t, "differential", text, func(seq props.Sequence) error { return props.Agree(subjects, seq) })
	})
}

// requireHolds runs the sequence that a text stands for, as far as it goes, and fails the
// test with a smaller one if it breaks an invariant.
func requireHolds(t *testing.T, name, text string, run func(props.Sequence) error) {
	t.Helper()
	seq, _ := props.ParseSequence(text) // as far as it goes
	seq = seq[:min(len(seq), longestFuzz)]
	err := run(seq)
	if err == nil {
		return
	}
	var first *props.Violation
	if !errors.As(err, &first) {
		t.Fatalf("%s: %v", name, err)
	}
	small := props.Shrink(seq, 2000, func(c props.Sequence) bool {
		var v *props.Violation
		return errors.As(run(c), &v) && v.Number == first.Number
	})
	t.Fatalf("%s: %v\nshrunk to\n%s", name, run(small), small.Lines())
}
