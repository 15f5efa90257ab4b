package gate_test

import (
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/gate"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// The random programs and histories. The defaults take a fraction of a second; more runs and other
// seeds find the same.
var (
	runs = flag.Int("gate.runs", 25, "random histories to judge")
	seed = flag.Uint64("gate.seed", rand.Uint64(), "seed of programs and histories")
)

// act is a request of a program. Blocks have names.
type act struct {
	kind   trace.Kind
	block  string
	size   device.Size
	stream device.Stream
	thread uint32
	pool   uint64
}

// program is what a training does, whatever ran before.
type program struct {
	weights []act // allocated before the steps
	graphs  []act // likewise, in private pools, of which 3 is that of the steps
	steps   [][]act
}

// training returns a random program of some steps.
func training(r *rand.Rand) *program {
	p := &program{}
	size := func() device.Size { return device.Size(r.IntN(6<<20) + 1) }
	for i := range 20 + r.IntN(20) {
		p.weights = append(p.weights, act{kind: trace.Alloc, block: fmt.Sprintf("weights:%d", i), size: size(),
			stream: device.Stream(r.IntN(9) / 8), thread: uint32(r.IntN(4))})
	}
	// Streams 2 and 3 are of no step, with equal bytes.
	for i, n := range []device.Size{8, 32, 20, 20} {
		p.weights = append(p.weights, act{kind: trace.Alloc, block: fmt.Sprintf("idle:%d", r.IntN(2)), size: n << 20,
			stream: device.Stream(2 + i/2)})
	}
	for i := range r.IntN(2) * 4 {
		p.graphs = append(p.graphs, act{kind: trace.Alloc, block: fmt.Sprintf("graph:%d", i), size: size(), pool: 3},
			// Pools 5 and 6 are of no step, with equal bytes and numbers of blocks.
			act{kind: trace.Alloc, block: fmt.Sprintf("idle graph:%d", i), size: device.Size(i%2*30+5) << 20, pool: 5},
			act{kind: trace.Alloc, block: fmt.Sprintf("idle graph:%d", i), size: 20 << 20, pool: 6})
	}
	for step := range 3 + r.IntN(2) {
		acts := []act{{kind: trace.Mark, block: fmt.Sprintf("step %d", step)}}
		var live []string
		for i := range 20 + r.IntN(30) {
			name := fmt.Sprintf("activation:%d#%d", i, step)
			a := act{kind: trace.Alloc, block: name, size: size(), stream: device.Stream(r.IntN(5) / 4),
				thread: uint32(r.IntN(3))}
			if r.IntN(8) == 0 {
				acts = append(acts, act{kind: trace.PoolBegin, pool: 3}, a, act{kind: trace.PoolEnd, pool: 3})
			} else {
				acts = append(acts, a)
			}
			if r.IntN(4) == 0 {
				acts = append(acts, act{kind: trace.Use, block: name, stream: 1})
			}
			live = append(live, name)
			for len(live) > 0 && r.IntN(3) == 0 {
				k := r.IntN(len(live))
				acts = append(acts, act{kind: trace.Free, block: live[k]})
				live = append(live[:k], live[k+1:]...)
			}
		}
		if step == 0 { // such as the state of an optimizer
			acts = append(acts, act{kind: trace.Alloc, block: "optimizer:0", size: size()})
		}
		for _, name := range live {
			acts = append(acts, act{kind: trace.Free, block: name})
		}
		p.steps = append(p.steps, acts)
	}
	return p
}

// recording writes a program as one history of it recorded it.
type recording struct {
	*rand.Rand
	t       *testing.T
	b       *trace.Builder
	ids     map[string]uint64
	next    uint64
	names   []device.Stream // of the streams
	threads []uint32        // likewise
	pools   []uint64        // likewise
	late    []uint64        // frees that are not final
}

func (h *recording) add(e trace.Event) {
	e.Time = trace.NoTime
	require.NoError(h.t, h.b.Add(e))
}

func (h *recording) do(a act) {
	e := trace.Event{Kind: a.kind, Size: a.size, Arg: h.pools[a.pool], Stream: h.names[a.stream]}
	switch a.kind {
	case trace.Alloc, trace.LiveAtStart:
		h.next += uint64(h.IntN(3)) + 1
		h.ids[a.block], e.ID = h.next, h.next
		tag, _, _ := strings.Cut(a.block, "#")
		e.Tag, e.Thread = h.b.Tag(tag), h.threads[a.thread]
	case trace.Mark:
		e.Tag = h.b.Tag(a.block)
	case trace.PoolBegin:
		e.Stream = trace.AllStreams
		e.Tag = h.b.Tag([]string{trace.PoolUseOnOOM, trace.PoolNoSplit, ""}[a.pool%3])
	case trace.Free, trace.Use:
		e.ID = h.ids[a.block]
	}
	h.add(e)
	if a.kind == trace.Free && h.IntN(2) == 0 {
		h.late = append(h.late, e.ID)
	}
	for len(h.late) > 0 && h.IntN(2) == 0 {
		h.add(trace.Event{Kind: trace.Completed, ID: h.late[0]})
		h.late = h.late[1:]
	}
}

// noise does other work: blocks that live for a while between others.
func (h *recording) noise(left *[]string, most int) {
	for range h.IntN(most) {
		if len(*left) > 0 && h.IntN(2) == 0 {
			k := h.IntN(len(*left))
			h.do(act{kind: trace.Free, block: (*left)[k]})
			*left = append((*left)[:k], (*left)[k+1:]...)
			continue
		}
		name := fmt.Sprintf("other work %d", h.next)
		if h.IntN(5) == 0 {
			h.do(act{kind: trace.PoolBegin, pool: 4})
			h.do(act{kind: trace.PoolEnd, pool: 4})
		}
		h.do(act{kind: trace.Alloc, block: name, size: device.Size(h.IntN(40 << 20)), stream: device.Stream(h.IntN(2))})
		*left = append(*left, name)
	}
}

// history returns a recording of a program in which other work ran before, the weights were
// allocated in another order, blocks and streams have other names, and frees complete at other
// times. If late, the recording began after the weights were allocated.
func history(t *testing.T, p *program, r *rand.Rand, late bool) *trace.Trace {
	h := &recording{Rand: r, t: t, b: trace.NewBuilder(trace.Header{Name: "train"}), ids: map[string]uint64{},
		next: uint64(r.IntN(1000)), names: []device.Stream{0}, threads: []uint32{0}, pools: []uint64{0}}
	for _, n := range r.Perm(100) {
		h.names = append(h.names, device.Stream(n+1))
		h.threads = append(h.threads, uint32(n+1))
		h.pools = append(h.pools, uint64(n+1))
	}
	var left []string
	weights := append([]act{}, p.weights...)
	r.Shuffle(len(weights), func(i, j int) { weights[i], weights[j] = weights[j], weights[i] })
	for _, w := range weights {
		if late {
			w.kind = trace.LiveAtStart
		} else {
			h.noise(&left, 6)
		}
		h.do(w)
	}
	r.Shuffle(len(p.graphs), func(i, j int) { p.graphs[i], p.graphs[j] = p.graphs[j], p.graphs[i] })
	for _, g := range p.graphs {
		h.do(act{kind: trace.PoolBegin, pool: g.pool})
		h.do(g)
		h.do(act{kind: trace.PoolEnd, pool: g.pool})
	}
	h.noise(&left, 20)
	for _, name := range left {
		h.do(act{kind: trace.Free, block: name})
	}
	for _, acts := range p.steps {
		for _, a := range acts {
			h.do(a)
		}
	}
	return h.b.Trace()
}

// measured returns the figures of a work with a strategy.
func measured(t *testing.T, w *gate.Work, strategy string) map[gate.State]gate.Figures {
	t.Helper()
	setup, err := strategies.All().Lookup(strategy, nil)
	require.NoError(t, err)
	now, err := w.Measure(t.Context(), compare.NewPool(0, 0), setup, nil)
	require.NoError(t, err)
	return now
}

// workOf returns the work of a recording.
func workOf(t *testing.T, src trace.Source) *gate.Work {
	t.Helper()
	w, err := gate.NewWork(src, nil, gate.Part{})
	require.NoError(t, err)
	return w
}

// budgetOf returns the budget that a recording gets.
func budgetOf(t *testing.T, src trace.Source) *gate.Budget {
	t.Helper()
	e := &gate.Budget{Figures: map[gate.State]gate.Figures{}}
	judged(t, e, src, gate.UpdateLower)
	return e
}

// judged returns the outcome of a recording.
func judged(t *testing.T, e *gate.Budget, src trace.Source, how gate.Update) *gate.Result {
	t.Helper()
	w := workOf(t, src)
	r, err := (&gate.Baseline{}).Judge(e, w, measured(t, w, "caching"), how, "1")
	require.NoError(t, err)
	return r
}

func TestHistoriesOfTheSameWorkHaveTheSameFigures(t *testing.T) {
	t.Logf("-gate.seed %d", *seed)
	var p *program
	before := map[string]map[gate.State]gate.Figures{}
	var first *gate.Work
	for run := range *runs {
		r := rand.New(rand.NewPCG(*seed, uint64(run)))
		if run%5 == 0 {
			p = training(r)
			first = workOf(t, history(t, p, r, false))
			clear(before)
		}
		w := workOf(t, history(t, p, r, run%5 == 4 && p.graphs == nil))
		for _, s := range gate.States {
			require.Equal(t, first.Events(s), w.Events(s), "run %d: any strategy gets the same calls", run)
		}
		for _, strategy := range []string{"caching", "bfc", "vmm"} {
			if before[strategy] == nil {
				before[strategy] = measured(t, first, strategy)
				require.Len(t, before[strategy], 2)
			}
			require.Equal(t, before[strategy], measured(t, w, strategy), "run %d: %s", run, strategy)
		}
	}
}

// TestNamesOfIdleStreamsAreHistory swaps two streams that no step uses, with equal bytes.
func TestNamesOfIdleStreamsAreHistory(t *testing.T) {
	recorded := func(a, b int) *gate.Work {
		text := fmt.Sprintf("a 1 64MiB stream=%d\na 2 32MiB stream=%d\na 3 32MiB stream=%[2]d\nmark \"step 1\"\na 10 8MiB\n"+
			"f 10\nf 1\na 99 100MiB\nmark \"step 2\"\na 20 8MiB\nf 20\nmark \"step 3\"\na 30 8MiB\nf 30\n", a, b)
		return workOf(t, textOf(t, text))
	}
	before, now := recorded(5, 9), recorded(9, 5)
	for _, s := range gate.States {
		require.Equal(t, before.Events(s), now.Events(s))
	}
}

// edited returns a trace whose events were passed through edit, which may add some.
func edited(t *testing.T, src *trace.Trace,
	edit func(i int, e trace.Event, add func(trace.Event, string))) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: src.Header.Name})
	add := func(e trace.Event, tag string) {
		e.Tag, e.Time = b.Tag(tag), trace.NoTime
		require.NoError(t, b.Add(e))
	}
	for i := range src.Events {
		edit(i, src.Events[i], add)
	}
	return b.Trace()
}

// peakOf returns the event of the peak of the live bytes after some event, and the end of its step.
func peakOf(t *testing.T, src *trace.Trace, from int) (at, end int) {
	var l trace.Ledger
	most := device.Size(0)
	for i := range src.Events {
		if l.Step(&src.Events[i]); i >= from && l.Live() > most {
			at, most = i, l.Live()
		}
	}
	steps, err := trace.Steps(src)
	require.NoError(t, err)
	for _, s := range steps {
		if s.First <= at && at < s.End {
			return at, s.End - 1
		}
	}
	require.Fail(t, "the peak is outside of the steps")
	return 0, 0
}

// heldAndFreed returns a block of at least some size that is live after some events, and one that
// was freed before.
func heldAndFreed(t *testing.T, events []trace.Event, from int, least device.Size) (held, freed trace.Event) {
	t.Helper()
	born := map[uint64]trace.Event{}
	for i, e := range events {
		switch e.Kind {
		case trace.Alloc:
			born[e.ID] = e
		case trace.Free:
			if b := born[e.ID]; i > from && b.Size >= least {
				freed = b
			}
			delete(born, e.ID)
		}
	}
	for _, e := range born {
		if e.Size >= least && e.ID > held.ID {
			held = e
		}
	}
	require.NotZero(t, held.Size)
	require.NotZero(t, freed.Size)
	return held, freed
}

// TestRegressionsAreFoundAndNamed seeds regressions of one percent of the peak into a recorded
// training.
func TestRegressionsAreFoundAndNamed(t *testing.T) {
	src, err := workload.OpenRecording("meta_resnet50_b256")
	require.NoError(t, err)
	steps, err := trace.Steps(src)
	require.NoError(t, err)
	work := steps[1].First
	at, end := peakOf(t, src, work)
	id := func(n int) uint64 { return 1<<40 + uint64(n) }
	percent := src.LowerBound() / 100
	held, freed := heldAndFreed(t, src.Events[:at], work, percent)
	block := func(from, to int, size device.Size, stream device.Stream, tag string) *trace.Trace {
		return edited(t, src, func(i int, e trace.Event, add func(trace.Event, string)) {
			add(e, src.TagOf(&e))
			if i == from {
				add(trace.Event{Kind: trace.Alloc, ID: id(0), Size: size, Stream: stream}, tag)
			}
			if i == to {
				add(trace.Event{Kind: trace.Free, ID: id(0)}, "")
			}
		})
	}
	tag, budget := src.TagOf(&held), budgetOf(t, src)
	for name, c := range map[string]struct {
		now    *trace.Trace
		change gate.Change
		at     string
		size   device.Size
	}{
		"at a new call site":   {block(at-5, end, percent, 0, "activation:new"), gate.BlockAdded, "activation:new", percent},
		"at a known call site": {block(at-1, at+1, percent, 0, tag), gate.BlockAdded, tag, percent},
		"of a known size":      {block(at-9, at+9, held.Size, 0, tag), gate.BlockAdded, tag, held.Size},
		"on another stream":    {block(at-3, end, percent, 7, "temp:new"), gate.BlockAdded, "temp:new", percent},
		"before the steps": {block(steps[0].First-1, -1, percent, 0, "weights:new"), gate.BlockAdded, "weights:new",
			percent},
		"kept by the warm-up": {block(steps[0].First+9, -1, percent, 0, "cache:new"), gate.BlockAdded, "cache:new", percent},
		"in a block that grew": {edited(t, src, func(_ int, e trace.Event, add func(trace.Event, string)) {
			text := src.TagOf(&e)
			if e.Kind == trace.Alloc && e.ID == held.ID {
				e.Size += percent
			}
			add(e, text)
		}), gate.BlockGrew, tag, held.Size + percent},
		"in a block that is held": {edited(t, src, func(i int, e trace.Event, add func(trace.Event, string)) {
			if e.Kind != trace.Free || e.ID != freed.ID {
				add(e, src.TagOf(&e))
			}
			if i == end {
				add(trace.Event{Kind: trace.Free, ID: freed.ID}, "")
			}
		}), gate.BlockHeld, src.TagOf(&freed), freed.Size},
	} {
		t.Run(name, func(t *testing.T) {
			r := judged(t, budget, c.now, gate.UpdateNone)
			require.Positive(t, r.Violated())
			require.Len(t, r.Causes, 1)
			got := r.Causes[0]
			require.Equal(t, c.change, got.Change)
			require.Equal(t, c.at, got.At)
			require.Equal(t, c.size, got.Size)
			require.Equal(t, 1, got.Blocks)
			require.Equal(t, c.at, r.Sites[0].At)
		})
	}
}

// sitesOf are stacks of one line, by id.
type sitesOf []string

func (s sitesOf) Stack(id uint64) uint32                { return uint32(id) }
func (s sitesOf) Lines(stack uint32) ([]string, string) { return s[stack : stack+1], s[stack] }
func (s sitesOf) Frames(uint32) iter.Seq[uint32]        { return func(func(uint32) bool) {} }
func (s sitesOf) Frame(uint32) (string, string)         { return "", "" }

// TestCallSitesAreTheSameElsewhere records a program with a new line and a new block on another
// machine.
func TestCallSitesAreTheSameElsewhere(t *testing.T) {
	e := &gate.Budget{Figures: map[gate.State]gate.Figures{}}
	judge := func(how gate.Update, text string, sites ...string) *gate.Result {
		w, err := gate.NewWork(textOf(t, text), sitesOf(append([]string{""}, sites...)), gate.Part{})
		require.NoError(t, err)
		r, err := (&gate.Baseline{}).Judge(e, w, measured(t, w, "caching"), how, "1")
		require.NoError(t, err)
		return r
	}
	judge(gate.UpdateLower, "a 1 3MiB\na 2 5MiB\na 3 5MiB\n", "/srv/a/project/model/net.py:10 forward",
		"/srv/a/project/model/net.py:20 loss ← /srv/a/project/train.py:7 main", "lib/x.py:3 f")
	r := judge(gate.UpdateNone, "a 1 3MiB\na 2 5MiB\na 3 5MiB\na 4 3MiB\n", "/ci/model/net.py:12 forward",
		"/ci/model/net.py:24 loss ← /ci/project/train.py:7 main", "lib/x.py:3 f", "/ci/model/net.py:13 mask")
	require.Len(t, r.Causes, 1)
	require.Equal(t, "1 block of 3.00 MiB added", r.Causes[0].String())
	require.Equal(t, "/ci/model/net.py:13 mask", r.Causes[0].At)
	require.Equal(t, []string{"/ci/model/net.py:13 mask"}, r.Causes[0].Lines)
	require.Equal(t, []gate.Site{{At: "model/net.py mask", Now: 3 << 20}}, r.Sites)
}

// textOf returns a recording of events as text.
func textOf(t *testing.T, text string) *trace.Trace {
	t.Helper()
	src, err := trace.Read(strings.NewReader(text), "train.trace", trace.Options{})
	require.NoError(t, err)
	return src
}

// TestWholeRecordingBeginsWithItsFirstEvent frees a block before the first allocation.
func TestWholeRecordingBeginsWithItsFirstEvent(t *testing.T) {
	w := workOf(t, textOf(t, "live 1 64MiB\nlive 2 1MiB\nf 1\na 3 2MiB\n"))
	require.Equal(t, uint64(65<<20), measured(t, w, "caching")[gate.Empty][gate.PeakLive])
}

// TestKindsBelowTheListAreBounded adds a block of a kind that the budget is too short to list.
func TestKindsBelowTheListAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "a %d 1MiB tag=weights:%d\n", i, i)
	}
	const small = "a %d 512 tag=mask\n"
	for i := range 100 {
		fmt.Fprintf(&text, small, 2000+i)
	}
	e := budgetOf(t, textOf(t, text.String()))
	require.Equal(t, device.Size(100*512+1), e.Above)
	for i := range 3 {
		fmt.Fprintf(&text, small, 2100+i)
	}
	r := judged(t, e, textOf(t, text.String()), gate.UpdateNone)
	require.Len(t, r.Causes, 1)
	require.Equal(t, "3 to 103 blocks of 512 B added", r.Causes[0].String())
	require.Equal(t, device.Size(3*512), r.Causes[0].Bytes)
	r.Causes[0].Unlisted = 103
	require.Equal(t, "at most 103 blocks of 512 B added", r.Causes[0].String())
}
