package trace_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// cutText cuts a trace in the text form and returns the part without its first line.
func cutText(t *testing.T, text string, s trace.Span) string {
	t.Helper()
	part, err := read(t, text).Cut(s)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := trace.Write(&b, part); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), "\n")
	return rest
}

func TestCutBacksolvesWhatWasThere(t *testing.T) {
	const whole = `live 9 900 stream=1 tag=w
a 1 100 align=256 stream=2 hint=high t=5
use 1 3
a 2 200
use 2 4
drain 4
f 1 t=6
a 3 300
f 3
pool begin 7 stream=2
pool begin 8
pool end 8
frontier 12
mark x
a 4 400 t=7
done 1
f 2
badfree 3
a 5 500
f 4
done 4
f 9
done 2
`
	one := device.Stream(1)
	for name, c := range map[string]struct {
		span trace.Span
		want string
	}{
		"middle": {trace.Span{First: 13, End: 20}, `# name=t
# cut=events 13:20 of 23
live 2 200
live 9 900 stream=1 tag=w
live 1 100 align=256 stream=2
use 1 3
f 1
frontier 12
pool begin 8
pool end 8
pool begin 7 stream=2
mark x
a 4 400 t=7
done 1
f 2
a 5 500
f 4
done 4
done 2
`},
		"one stream": {trace.Span{First: 14, End: 23, Stream: &one}, `# name=t
# cut=events 14:23 of 23
# cut_stream=1
live 9 900 stream=1 tag=w
frontier 12
pool begin 8
pool end 8
f 9
`},
		"nothing": {trace.Span{First: 23, End: 23}, `# name=t
# cut=events 23:23 of 23
live 5 500
frontier 12
pool begin 8
pool end 8
pool begin 7 stream=2
`},
	} {
		got := cutText(t, whole, c.span)
		if got = strings.Replace(got, "name=t.txt", "name=t", 1); got != c.want {
			t.Errorf("%s:\n%swant\n%s", name, got, c.want)
		}
	}
}

func TestDrainedLaterIsPending(t *testing.T) {
	got := cutText(t, "a 1 5\na 2 5\nuse 1 3\nuse 2 4\nf 1\nf 2\ntrim\ndrain 3\n", trace.Span{First: 6, End: 8})
	if want := "live 1 5\nuse 1 3\nf 1\ntrim\ndrain 3\n"; !strings.HasSuffix(got, "of 8\n"+want) {
		t.Errorf("%s", got)
	}
}

func TestCutRefusesWhatIsNotThere(t *testing.T) {
	tr := read(t, "a 1 5\n")
	for _, s := range []trace.Span{{First: -1}, {First: 1, End: 0}, {First: 0, End: 2}, {First: 2, End: 2}} {
		if _, err := tr.Cut(s); err == nil || !strings.HasSuffix(err.Error(), ": the trace has 1") {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestCutOfEverythingIsTheTrace(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tr := anyTrace(rng)
		part, err := tr.Cut(trace.Span{End: len(tr.Events)})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(part.Events, tr.Events) || !reflect.DeepEqual(part.Header, tr.Header) {
			t.Fatalf("seed %d:\n%+v\n%+v", seed, part, tr)
		}
	}
}

// TestCutAgreesWithTheWhole compares what is live, and what is freed but not final, behind every event of
// random parts of random traces. The part must be one that can be written and read.
func TestCutAgreesWithTheWhole(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		tr := anyTrace(rng)
		first := rng.IntN(len(tr.Events) + 1)
		s := trace.Span{First: first, End: first + rng.IntN(len(tr.Events)-first+1)}
		if seed%2 == 0 && len(tr.Events) > 0 {
			s.Stream = &tr.Events[rng.IntN(len(tr.Events))].Stream
		}
		part, err := tr.Cut(s)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sameAfterWriting(t, part)
		inFront := states(tr.Events[:s.First], s.Stream)
		whole, pieces := states(tr.Events[:s.End], s.Stream), states(part.Events, nil)
		births := len(whole) - len(inFront)
		whole, pieces = whole[max(len(whole)-births-1, 0):], pieces[max(len(pieces)-births-1, 0):]
		if !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("seed %d, %v:\n%v\n%v", seed, s, whole, pieces)
		}
	}
}

// states returns the live bytes in front of the first and behind each allocation and free, of one stream
// or all.
func states(events []trace.Event, stream *device.Stream) []device.Size {
	list := []device.Size{0}
	sizes := map[uint64]device.Size{}
	var live device.Size
	for _, e := range events {
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			if stream != nil && e.Stream != *stream {
				continue
			}
			live += e.Size
			sizes[e.ID] = e.Size
		case trace.Free:
			size, ok := sizes[e.ID]
			if !ok {
				continue
			}
			delete(sizes, e.ID)
			live -= size
		default:
			continue
		}
		list = append(list, live)
	}
	return list
}

func TestSpanByTime(t *testing.T) {
	tr := read(t, "live 0 1\na 1 1 t=10\nf 1\na 2 1 t=10\na 3 1 t=20\ntrim\na 4 1 t=30\n")
	for _, c := range []struct {
		from, to   int64
		first, end int
	}{{0, 100, 1, 7}, {10, 20, 1, 4}, {11, 21, 4, 6}, {21, 30, 6, 6}, {31, 99, 7, 7}, {20, 10, 4, 4}} {
		if s := tr.InTime(c.from, c.to); s.First != c.first || s.End != c.end {
			t.Errorf("%d to %d: %d to %d, want %d to %d", c.from, c.to, s.First, s.End, c.first, c.end)
		}
	}
}

func TestStepsAreMarksThatCount(t *testing.T) {
	for text, want := range map[string][]trace.Step{
		"":                               nil,
		"mark \"iter 0\"\na 0 1\n":       nil,
		"mark fwd\nmark bwd\nmark fwd\n": nil,
		"a 0 1\nmark s1\na 1 1\nmark s2": {{Name: "s1", First: 1, End: 3}, {Name: "s2", First: 3, End: 4}},
		"mark init\nmark \"iter 0\"\nmark fwd\ntrim\nmark \"iter 1\"\nmark fwd\ntrim\nmark teardown\ntrim\n": {
			{Name: "iter 0", First: 1, End: 4}, {Name: "iter 1", First: 4, End: 7}},
		"mark r1\nmark r2\nmark r3\nmark step1\nmark step2\nmark r4\n": {
			{Name: "step1", First: 3, End: 4}, {Name: "step2", First: 4, End: 5}},
		"mark step1\nmark \"end step1\"\nmark step2\nmark \"end step2\"\n": {
			{Name: "step1", First: 0, End: 2}, {Name: "step2", First: 2, End: 4}},
		"mark step1\nmark \"step1 end\"\nmark step2\nmark \"step2 end\"\nmark \"step3 end\"\n": {
			{Name: "step1", First: 0, End: 2}, {Name: "step2", First: 2, End: 5}},
	} {
		if got := read(t, text).Steps(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%v, want\n%v", text, got, want)
		}
	}
}

func TestInfoTellsRegularityAndLives(t *testing.T) {
	in := read(t, `live 9 7
mark "step 0"
a 0 10 t=1000
a 1 20
f 0 t=4000
done 0
mark "step 1"
a 2 10
f 1
a 3 21
refused 77
done 1
a 4 5
mark "step 2"
a 5 10
pool begin 3
a 6 21
a 7 5
f 9
`).Info()
	steps := trace.StepInfo{Count: 3, First: "step 0", MinAllocs: 2, MaxAllocs: 3, Compared: 5, Recurring: 4, Identical: 1}
	if in.Steps != steps {
		t.Errorf("%+v, want %+v", in.Steps, steps)
	}
	lives := trace.LifeInfo{Freed: 3, Kept: 6, MedianEvents: 5, TenthEvents: 18, MaxEvents: 18, Timed: 1,
		MedianTime: 3000, TenthTime: 3000, MaxTime: 3000, Delayed: 1, FromStart: 1}
	if in.Lives != lives {
		t.Errorf("%+v, want %+v", in.Lives, lives)
	}
	if in.Pools != 1 || in.Refused != 77 {
		t.Errorf("%d pools, %d refused", in.Pools, in.Refused)
	}
}
