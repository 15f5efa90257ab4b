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

// longestFuzz is how many operations of a fuzzer's input are used.
const longestFuzz = 400

// Fuzz lets Go's fuzzer make up sequences of operations for the subject. Its inputs are
// lines of text, so that a corpus can be read and written by hand; lines that mean nothing
// are passed over.
func Fuzz(f *testing.F, s props.Subject) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seq, _ := props.ParseSequence(text) // as far as it goes
		seq = seq[:min(len(seq), longestFuzz)]
		if _, err := props.Record(s, seq); err != nil {
			small := props.Shrink(seq, 2000, func(c props.Sequence) bool { return sameFailure(s, c, err) })
			_, err = props.Record(s, small)
			t.Fatalf("%v\nshrunk to\n%s", err, small.Lines())
		}
	})
}

// sameFailure reports whether a sequence breaks the invariant that err is about.
func sameFailure(s props.Subject, seq props.Sequence, err error) bool {
	var want, got *props.Violation
	_, other := props.Record(s, seq)
	return errors.As(err, &want) && errors.As(other, &got) && want.Number == got.Number
}
