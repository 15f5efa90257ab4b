package propstest

import (
	"errors"
	"slices"
	"testing"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/props"
)

// RunBounded churns through every subject with this number of calls for each pattern that applies
// to it, and requires that its memory stays bounded, or does not if it lists the exception. The
// device should be without a capacity, unless the subject decides by it. Subjects run in parallel.
func RunBounded(t *testing.T, calls int, subjects ...props.Subject) {
	t.Helper()
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			patterns, err := props.Patterns(s)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(s.Promises.Except, func(e promise.Exception) bool {
				return e.Invariant == props.IBounded.String()
			})
			excused := false
			for _, p := range patterns {
				g, err := props.Bounded(s, props.Churn{Pattern: p, Operations: calls})
				t.Logf("%s: %v", p, g)
				if v, ok := errors.AsType[*props.Violation](err); i >= 0 && ok && v.Number == props.IBounded {
					excused = true
					t.Logf("excused, %s: %v", s.Promises.Except[i].Reason, err)
					continue
				}
				reportBounded(t, s, err)
			}
			if i >= 0 && !excused {
				t.Errorf("its memory is bounded, and excused because: %s", s.Promises.Except[i].Reason)
			}
		})
	}
}

// reportBounded reports the error of a long run, and leaves its calls in a file.
func reportBounded(t testing.TB, s props.Subject, err error) {
	t.Helper()
	u, ok := errors.AsType[*props.Unbounded](err)
	switch {
	case err == nil:
	case !ok:
		t.Fatal(err)
	default:
		path, writeErr := writeTrace(t, s.Name+"-"+string(u.Churn.Pattern), u.Violation, u.WriteTrace)
		t.Errorf("%v\ntrace: %s %v", u, path, writeErr)
	}
}
