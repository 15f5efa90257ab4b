package trace_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

func TestCompareReportsDifferences(t *testing.T) {
	a := read(t, "# k=1\n# k=2\n# only=a\na 0 10\na 1 20\nf 0\na 2 30 stream=1\n")
	b := read(t, "# k=1\n# k=3\n# other=b\na 0 10\na 1 21\nmark x\na 3 30 stream=1\nf 0\na 4 40\n")
	text := func(s string) *string { return &s }
	want := trace.Diff{
		Header: []trace.HeaderDiff{{Key: "k", A: text("2"), B: text("3")}, {Key: "only", A: text("a")},
			{Key: "other", B: text("b")}},
		Events: [2]int{4, 6},
		First:  &trace.EventDiff{Index: 1, A: "a 1 20", B: "a 1 21"},
		Kinds:  []trace.KindDiff{{Kind: "alloc", A: 3, B: 4}, {Kind: "mark", A: 0, B: 1}},
		Allocs: trace.AllocDiff{
			Count: [2]int{1, 2}, Bytes: [2]device.Size{20, 61},
			First: [2][]trace.AllocEvent{{{Index: 1, ID: 1, Size: 20}},
				{{Index: 1, ID: 1, Size: 21}, {Index: 5, ID: 4, Size: 40}}},
			IDs: &trace.IDDiff{OnlyIn: [2]int{1, 2}, Changed: 1},
		},
		Live: trace.LiveDiff{Peak: [2]device.Size{50, 91}, At: [2]int{3, 5}, MaxDifference: 41, MaxAt: 2, FirstAt: 1},
	}
	if got := trace.Compare(a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
	if d := trace.Compare(read(t, "a 0 1\nf 0\na 0 1\n"), a); d.Allocs.IDs != nil {
		t.Errorf("an id that is given twice was compared: %+v", d.Allocs)
	}
}

func TestCompareIgnoresNamesAndMissingTimes(t *testing.T) {
	untimed, zero, timed := read(t, "# name=x\na 0 1\nf 0\n"), read(t, "# name=y\na 0 1 t=0\nf 0 t=0\n"),
		read(t, "a 0 1 t=0\nf 0 t=7\n")
	if d := trace.Compare(untimed, zero); !d.Equal {
		t.Errorf("%+v", d)
	}
	if d := trace.Compare(zero, timed); d.Equal || d.First.Index != 1 {
		t.Errorf("%+v", d)
	}
	if d := trace.Compare(untimed, timed); d.Equal || d.First.Index != 0 {
		t.Errorf("%+v", d)
	}
}

func TestCompareOfATraceWithItselfIsEqual(t *testing.T) {
	for seed := range uint64(200) {
		tr := anyTrace(rand.New(rand.NewPCG(seed, 3)))
		if d := trace.Compare(tr, tr); !d.Equal || d.Allocs.Count != [2]int{} || d.Live.FirstAt != -1 || d.Kinds != nil {
			t.Fatalf("seed %d: %+v", seed, d)
		}
		if len(tr.Events) == 0 {
			continue
		}
		shorter := *tr
		shorter.Events = tr.Events[:len(tr.Events)-1]
		d := trace.Compare(tr, &shorter)
		if d.Equal || d.First == nil || d.First.Index != len(shorter.Events) || d.First.B != "" {
			t.Fatalf("seed %d: %+v", seed, d)
		}
	}
}
