package trace_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// cutText cuts a trace in the text form and returns the part without its first line.
func cutText(t *testing.T, text string, s trace.Span) string {
	t.Helper()
	part, err := trace.Cut(read(t, text), s, 0)
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

func TestCutRestoresTheBlocksOfItsStart(t *testing.T) {
	const whole = `live 9 900 stream=1 tag=w thread=3 life=run
a 1 100 align=256 stream=2 hint=high site=0xab t=5
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
live 9 900 stream=1 tag=w thread=3 life=run
live 1 100 align=256 stream=2 site=0xab
pool begin 8
pool end 8
pool begin 7 stream=2
use 1 3
f 1
frontier 12
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
live 9 900 stream=1 tag=w thread=3 life=run
pool begin 8
pool end 8
frontier 12
f 9
`},
		"nothing": {trace.Span{First: 23, End: 23}, `# name=t
# cut=events 23:23 of 23
live 5 500
pool begin 8
pool end 8
pool begin 7 stream=2
frontier 12
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

func TestCutRefusesSpansOutsideTheTrace(t *testing.T) {
	tr := read(t, "a 1 5\n")
	for _, s := range []trace.Span{{First: -1}, {First: 1, End: 0}, {First: 0, End: 2}, {First: 2, End: 2}} {
		if _, err := trace.Cut(tr, s, 0); err == nil || !strings.HasSuffix(err.Error(), ": the trace has 1") {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestCutOfEverythingIsTheTrace(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tr := anyTrace(rng)
		part, err := trace.Cut(tr, trace.Span{End: len(tr.Events)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(part.Events, tr.Events) || !reflect.DeepEqual(part.Header, tr.Header) {
			t.Fatalf("seed %d:\n%+v\n%+v", seed, part, tr)
		}
	}
}

// TestCutAgreesWithTheWhole compares the live blocks, and the freed ones that are not final, after
// every event of random parts of random traces. The part must be one that can be written and read.
func TestCutAgreesWithTheWhole(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		tr := anyTrace(rng)
		first := rng.IntN(len(tr.Events) + 1)
		s := trace.Span{First: first, End: first + rng.IntN(len(tr.Events)-first+1)}
		if seed%2 == 0 && len(tr.Events) > 0 {
			s.Stream = &tr.Events[rng.IntN(len(tr.Events))].Stream
		}
		part, err := trace.Cut(tr, s, 0)
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

// states returns the live bytes of one stream or all: before the first allocation or free, and
// after each.
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

// block is a live block with its pool.
type block struct {
	size   device.Size
	stream device.Stream
	pool   uint64 // private pool, 0 for none
}

// program tracks a trace as a strategy with private pools does.
type program struct {
	live  map[uint64]block
	users map[uint64]int
	open  []trace.Event // redirections, as they were begun
}

// step applies an event.
func (p *program) step(e *trace.Event) {
	begun := func(pool uint64) int {
		return slices.IndexFunc(p.open, func(o trace.Event) bool { return o.Arg == pool })
	}
	switch e.Kind {
	case trace.LiveAtStart:
		p.live[e.ID] = block{e.Size, e.Stream, 0}
	case trace.Alloc:
		b := block{e.Size, e.Stream, 0}
		for _, o := range p.open {
			if o.Stream == trace.AllStreams || o.Stream == e.Stream {
				b.pool = o.Arg
				break
			}
		}
		p.live[e.ID] = b
	case trace.Free:
		delete(p.live, e.ID)
	case trace.PoolBegin:
		p.users[e.Arg]++
		p.open = append(p.open, trace.Event{Arg: e.Arg, Stream: e.Stream})
	case trace.PoolEnd:
		if i := begun(e.Arg); i >= 0 {
			p.open = slices.Delete(p.open, i, i+1)
		}
	case trace.PoolRelease:
		if p.users[e.Arg]--; p.users[e.Arg] <= 0 {
			delete(p.users, e.Arg)
		}
	}
}

// onStream returns the blocks of a stream, or all.
func (p *program) onStream(stream *device.Stream) map[uint64]block {
	blocks := map[uint64]block{}
	for id, b := range p.live {
		if stream == nil || b.stream == *stream {
			blocks[id] = b
		}
	}
	return blocks
}

// TestCutKeepsEveryBlockInItsPool compares the live blocks, their pools, the users of pools and the
// redirections after every event of random parts of random traces.
func TestCutKeepsEveryBlockInItsPool(t *testing.T) {
	pooled := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		tr := poolTrace(rng)
		first := rng.IntN(len(tr.Events) + 1)
		s := trace.Span{First: first, End: first + rng.IntN(len(tr.Events)-first+1)}
		if seed%3 == 0 {
			only := device.Stream(rng.IntN(3))
			s.Stream = &only
		}
		part, err := trace.Cut(tr, s, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		whole := program{live: map[uint64]block{}, users: map[uint64]int{}}
		piece := program{live: map[uint64]block{}, users: map[uint64]int{}}
		for i := range s.First {
			whole.step(&tr.Events[i])
		}
		at := len(part.Events) - (s.End - s.First) // of the first event that is not of the opening
		if s.Stream != nil {
			at = len(part.Events) // the part lacks events: only its end is compared
		}
		for i := range at {
			piece.step(&part.Events[i])
		}
		for i := s.First; i <= s.End; i++ {
			if s.Stream == nil || i == s.End {
				want := whole.onStream(s.Stream)
				if !reflect.DeepEqual(piece.live, want) {
					t.Fatalf("seed %d, %v, in front of event %d:\n%v, want\n%v", seed, s, i, piece.live, want)
				}
				for _, b := range want {
					pooled += min(int(b.pool), 1)
				}
			}
			if s.Stream == nil && (!reflect.DeepEqual(piece.users, whole.users) || !slices.Equal(piece.open, whole.open)) {
				t.Fatalf("seed %d, %v, in front of event %d: users %v, open %v, want %v, %v",
					seed, s, i, piece.users, piece.open, whole.users, whole.open)
			}
			if i < s.End {
				whole.step(&tr.Events[i])
				if s.Stream == nil {
					piece.step(&part.Events[at])
					at++
				}
			}
		}
	}
	if pooled < 1000 {
		t.Errorf("%d blocks in pools: the traces test too little", pooled)
	}
}

// TestCutKeepsOptionsOfPools has a pool that is open at the start of the part and one that is not.
func TestCutKeepsOptionsOfPools(t *testing.T) {
	tr := read(t, "pool begin 1 options=no_split\na 1 5\npool end 1\n"+
		"pool begin 2 options=use_on_oom\npool begin 1\na 2 5\n")
	part, err := trace.Cut(tr, trace.Span{First: 5, End: 6}, 0)
	if err != nil {
		t.Fatal(err)
	}
	options := map[uint64]map[string]bool{1: {}, 2: {}}
	for i := range part.Events {
		if e := &part.Events[i]; e.Kind == trace.PoolBegin {
			options[e.Arg][part.TagOf(e)] = true
		}
	}
	want := map[uint64]map[string]bool{1: {trace.PoolNoSplit: true}, 2: {trace.PoolUseOnOOM: true}}
	if !reflect.DeepEqual(options, want) {
		t.Errorf("got %v, want %v", options, want)
	}
}

// poolTrace draws a trace of three streams and three private pools, without events that a strategy
// rejects.
func poolTrace(rng *rand.Rand) *trace.Trace {
	var b trace.Builder
	users, open := map[uint64]int{}, map[uint64]int{}
	for range rng.IntN(80) {
		e := trace.Event{Kind: trace.Alloc, ID: rng.Uint64N(12), Size: device.Size(1 + rng.IntN(100)),
			Stream: device.Stream(rng.IntN(3)), Time: trace.NoTime}
		pool := 1 + rng.Uint64N(3)
		switch rng.IntN(8) {
		case 0, 1:
			e = trace.Event{Kind: trace.Free, ID: e.ID, Time: trace.NoTime}
		case 2:
			e = trace.Event{Kind: trace.PoolBegin, Arg: pool, Stream: e.Stream, Time: trace.NoTime}
			if rng.IntN(3) == 0 {
				e.Stream = trace.AllStreams
			}
			users[pool]++
			open[pool]++
		case 3:
			if open[pool] == 0 {
				continue
			}
			e = trace.Event{Kind: trace.PoolEnd, Arg: pool, Time: trace.NoTime}
			open[pool]--
		case 4:
			if users[pool] == 0 {
				continue
			}
			e = trace.Event{Kind: trace.PoolRelease, Arg: pool, Time: trace.NoTime}
			users[pool]--
		}
		_ = b.Add(e) // events that the builder rejects are omitted
	}
	return b.Trace()
}

func TestCutRefusesAPartThatIsTooLong(t *testing.T) {
	tr := read(t, "a 1 5\na 2 5\na 3 5\n")
	if part, err := trace.Cut(tr, trace.Span{First: 1, End: 2}, 2); err != nil || len(part.Events) != 2 {
		t.Errorf("%v", err)
	}
	if _, err := trace.Cut(tr, trace.Span{First: 1, End: 3}, 2); err == nil ||
		err.Error() != "the part has more than 2 events" {
		t.Errorf("%v", err)
	}
}

func TestSpanByTime(t *testing.T) {
	tr := read(t, "live 0 1\na 1 1 t=10\nf 1\na 2 1 t=10\na 3 1 t=20\ntrim\na 4 1 t=30\n")
	for _, c := range []struct {
		from, to   int64
		first, end int
	}{{0, 100, 1, 7}, {10, 20, 1, 4}, {11, 21, 4, 6}, {21, 30, 6, 6}, {31, 99, 7, 7}, {20, 10, 4, 4}} {
		if s, timed, err := trace.InTime(tr, c.from, c.to); err != nil || !timed || s.First != c.first || s.End != c.end {
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
		if got, err := trace.Steps(read(t, text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%v, want\n%v", text, got, want)
		}
	}
}

func TestInfoReportsRegularityAndLifetimes(t *testing.T) {
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
	lives := trace.LifeInfo{Freed: 3, Kept: 6, MedianEvents: 5, P90Events: 18, MaxEvents: 18, Timed: 1,
		MedianTime: 3000, P90Time: 3000, MaxTime: 3000, Delayed: 1, FromStart: 1}
	if in.Lives != lives {
		t.Errorf("%+v, want %+v", in.Lives, lives)
	}
	if in.Pools != 1 || in.Refused != 77 {
		t.Errorf("%d pools, %d refused", in.Pools, in.Refused)
	}
}

// TestCutRestoresSettings cuts behind settings that were changed. Each text is set once, where it
// was set last, so that options that a later text leaves alone keep their values.
func TestCutRestoresSettings(t *testing.T) {
	const whole = `live 1 5
conf expandable_segments:True
conf max_split_size_mb:20
conf expandable_segments:True
a 2 6
conf ""
f 2
`
	want := `# name=t
# cut=events 5:6 of 7
live 1 5
live 2 6
conf max_split_size_mb:20
conf expandable_segments:True
conf ""
`
	if got := cutText(t, whole, trace.Span{First: 5, End: 6}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCutDoesNotAllocateForEachEvent(t *testing.T) {
	var b trace.Builder
	for id := range uint64(1000) {
		if err := b.Alloc(id, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	whole := b.Trace()
	if n := testing.AllocsPerRun(3, func() {
		if _, err := trace.Cut(whole, trace.Span{End: len(whole.Events)}, 0); err != nil {
			t.Fatal(err)
		}
	}); n > 200 {
		t.Errorf("%v allocations for %d events", n, len(whole.Events))
	}
}
