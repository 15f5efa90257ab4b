package props_test

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/props"
)

// A strategy that forgets to merge a freed block with the one on its left is caught, and
// the hundred calls that showed it shrink to two: two blocks, freed in order by the suite.
func ExampleVerify() {
	_, err := props.Verify(firstFitSubject(mergesNotLeft), props.Options{Sequences: 100, Seed: 1})
	var f *props.Failure
	if errors.As(err, &f) {
		fmt.Printf("%v\n%s", f.Violation, f.Sequence.Lines())
	}
	// Output:
	// invariant I5 (coalescing): free chunks 0x7f0000000000 of 64 bytes and 0x7f0000000040 of 4032 bytes are not merged
	// a 1
	// a 1
}
