package propstest

import (
	"testing"

	"github.com/vramyard/vramyard/props"
)

// RunMetamorphic checks the relations between two runs of one strategy for every subject,
// with a tenth of the sequences that the flags ask for, since each runs on five instances.
// Subjects run in parallel.
func RunMetamorphic(t *testing.T, subjects ...props.Subject) {
	t.Helper()
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r, err := props.Metamorphic(s, options(10, 1))
			reportRelations(t, r, err)
		})
	}
}

// RunDifferential checks that the subjects differ in placement only, with one share in so
// many of the sequences that the flags ask for.
func RunDifferential(t *testing.T, share int, subjects ...props.Subject) {
	t.Helper()
	r, err := props.Differential(subjects, options(share, 1))
	reportRelations(t, r, err)
}

// reportRelations logs what was done, or fails the test and leaves the trace in a file.
// Running out of memory and illegal requests need not occur: the relations are about more.
func reportRelations(t testing.TB, r props.Result, err error) {
	t.Helper()
	if err != nil {
		report(t, r, err)
		return
	}
	t.Log(r)
	if r.Grants == 0 || r.Frees == 0 || r.BadFrees == 0 {
		t.Errorf("the sequences did not reach everything: %v", r)
	}
}
