package trace_test

import (
	"reflect"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/harness/trace"
)

func TestBuiltTracesEqualReadTraces(t *testing.T) {
	b := trace.NewBuilder(trace.Header{Name: "t"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(b.AllocRequest(3, alloc.Request{Size: 5, Align: 64, Stream: 1, Hint: alloc.HintLow, Before: 7}, "x y"))
	must(b.Mark("step"))
	must(b.Alloc(4, 6, 2))
	must(b.Free(3))
	if b.Live(3) || !b.Live(4) || b.Live(5) {
		t.Error("Live is wrong")
	}
	want := read(t, "a 3 5 align=64 stream=1 hint=low before=7 tag=\"x y\"\nmark step\na 4 6 stream=2\nf 3\n")
	compare(t, b.Trace(), want, "")
}

func TestRefusedEventsChangeNothing(t *testing.T) {
	b := trace.NewBuilder(trace.Header{})
	if err := b.Alloc(0, 5, 0); err != nil {
		t.Fatal(err)
	}
	for _, e := range []trace.Event{
		{Kind: trace.Alloc, Time: trace.NoTime}, {Kind: trace.Free, ID: 1, Time: trace.NoTime}, {Kind: trace.Free, Time: -2},
		{Kind: trace.LiveAtStart, ID: 2, Time: trace.NoTime}, {Kind: trace.Completed, Time: trace.NoTime}, {Kind: 21},
		{Kind: trace.Resume, Time: trace.NoTime},
	} {
		if err := b.Add(e); err == nil {
			t.Errorf("%+v was accepted", e)
		}
	}
	if err := b.Free(0); err != nil {
		t.Error(err)
	}
	if tr := b.Trace(); len(tr.Events) != 2 || tr.Slots != 1 || !reflect.DeepEqual(tr.Tags, []string{""}) {
		t.Errorf("%+v", tr)
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range trace.Kinds {
		if seen[k.String()] {
			t.Errorf("two kinds are called %s", k)
		}
		seen[k.String()] = true
	}
	if got := trace.Kind(99).String(); got != "invalid" {
		t.Errorf("kind 99 is called %s", got)
	}
}
