package strategies_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// studyGroup is a group of traces of docs/recall-study.md.
type studyGroup string

const (
	groupPlain     studyGroup = "unchanged"
	groupPerturbed studyGroup = "perturbed" // changed at random places
	groupSpliced   studyGroup = "spliced"   // with one deviation, after which the old steps return
	groupRandom    studyGroup = "random"    // random requests, which do not repeat
)

// studyCase is a trace of the study. Only the unchanged traces are always in memory.
type studyCase struct {
	group studyGroup
	name  string                       // of the trace, with its change
	kind  string                       // of the change: "drop", "a new shape"; of a random trace, the shape
	rate  float64                      // of a perturbation
	seed  uint64                       // of a perturbation
	plain *trace.Trace                 // the unchanged trace; nil for a random one
	steps trace.StepInfo               // of the unchanged trace
	build func() (*trace.Trace, error) // returns the trace

	// of a spliced trace: its deviation in events, and the number of events in the step before it
	from, to, period int
}

const (
	studyEval   = 200   // requests of an inserted evaluation
	randomPairs = 20000 // of a random workload
	randomSeeds = 5     // of each random workload
	studyAllocs = 5000  // fewest requests of a trace that is changed, so that 0.1 % are a few
)

// large reports whether a trace is changed and timed.
func (c *studyCase) large() bool {
	return c.group == groupPlain && c.steps.Count >= 3 && c.plain.Info().Allocs >= studyAllocs
}

// studyKinds are the perturbations, with the rates and the number of seeds.
var (
	studyRates = []float64{0.001, 0.01, 0.1}
	studyKinds = []struct {
		name                       string
		drop, insert, resize, swap float64 // times the rate
		rates                      []float64
		seeds                      uint64
	}{
		{"drop", 1, 0, 0, 0, studyRates[1:2], 1},
		{"insert", 0, 1, 0, 0, studyRates[1:2], 1},
		{"resize", 0, 0, 1, 0, studyRates[1:2], 1},
		{"swap", 0, 0, 0, 1, studyRates[1:2], 1},
		{studyAll, 1, 1, 1, 1, studyRates, 2},
	}
)

const studyAll = "all four" // kinds of perturbation at once

// plainTraces returns the traces of the given files, or else those of the repository.
func plainTraces(t *testing.T, files []string) (all []*trace.Trace) {
	t.Helper()
	if len(files) == 0 {
		for _, tr := range workload.EachRecording {
			all = append(all, tr)
		}
		var err error
		files, err = filepath.Glob(filepath.Join("..", "examples", "incidents", "*.trace.gz"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
	}
	for _, file := range files {
		tr, err := formats.Open(file, formats.Options{})
		require.NoError(t, err)
		all = append(all, tr)
	}
	return all
}

// studyCases returns the traces and what is made of them.
func studyCases(t *testing.T, plain []*trace.Trace) (cases []studyCase) {
	t.Helper()
	var changed []studyCase
	var before *trace.Trace
	for _, tr := range plain {
		c := studyCase{group: groupPlain, name: tr.Header.Name, plain: tr, steps: tr.Info().Steps,
			build: func() (*trace.Trace, error) { return tr, nil }}
		cases = append(cases, c)
		if c.large() {
			changed = append(append(changed, perturbedCases(c)...), splicedCases(t, c, before)...)
			before = tr
		}
	}
	return append(cases, changed...)
}

// perturbedCases returns each perturbation of a trace.
func perturbedCases(c studyCase) (cases []studyCase) {
	of := c.plain
	c.group = groupPerturbed
	for _, k := range studyKinds {
		for _, rate := range k.rates {
			for seed := range k.seeds {
				p := workload.Perturbation{
					Drop: k.drop * rate, Insert: k.insert * rate, Resize: k.resize * rate, Swap: k.swap * rate, Seed: seed + 1,
				}
				c.name, c.kind, c.rate, c.seed = of.Header.Name+" "+p.String(), k.name, rate, p.Seed
				c.build = func() (*trace.Trace, error) { return workload.Perturb(of, p) }
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// splicedCases returns a trace with an evaluation in its middle, with larger tensors in its middle
// step, and in turns with another trace, if there is one.
func splicedCases(t *testing.T, c studyCase, other *trace.Trace) (cases []studyCase) {
	t.Helper()
	tr := c.plain
	steps, err := trace.Steps(tr)
	require.NoError(t, err)
	middle := steps[len(steps)/2]
	c.group, c.from, c.period = groupSpliced, middle.First, middle.First-steps[len(steps)/2-1].First
	add := func(kind string, to int, build func() (*trace.Trace, error)) {
		c.name, c.kind, c.to, c.build = tr.Header.Name+" "+kind, kind, to, build
		cases = append(cases, c)
	}
	add("train, eval, train", middle.First+1+2*studyEval, func() (*trace.Trace, error) {
		return workload.Perturb(tr, workload.Perturbation{Eval: studyEval})
	})
	add("a new shape", middle.End, func() (*trace.Trace, error) { return withShape(tr, middle) })
	if other != nil {
		its, err := trace.Steps(other)
		require.NoError(t, err)
		half := its[len(its)/2].First
		add("two models in turns", middle.First+half, func() (*trace.Trace, error) {
			return inTurns(tr, other, middle.First, half)
		})
	}
	return cases
}

// timed reports whether the time of a trace is measured.
func (c *studyCase) timed() bool {
	return c.large() || c.kind == studyAll && c.rate == studyRates[1] && c.seed == 1
}

// randomCases returns workloads that do not repeat.
func randomCases() (cases []studyCase) {
	for _, shape := range workload.All() {
		if shape.Default.Steps > 0 {
			continue // a training
		}
		for seed := range uint64(randomSeeds) {
			p := shape.Default
			p.Seed, p.Pairs = seed+1, randomPairs
			cases = append(cases, studyCase{
				group: groupRandom, name: fmt.Sprintf("%s seed=%d", shape.Name, p.Seed), kind: shape.Name,
				build: func() (*trace.Trace, error) {
					w, err := shape.New(p)
					if err != nil {
						return nil, err
					}
					return w.Trace()
				},
			})
		}
	}
	return cases
}

// withShape returns a trace with larger blocks in one step: a block that is requested and freed in
// it has five quarters of its size, rounded up to 512 bytes.
func withShape(tr *trace.Trace, step trace.Step) (*trace.Trace, error) {
	freed := map[uint64]int{} // by id, the last free within the step
	for i := step.First; i < step.End; i++ {
		if e := &tr.Events[i]; e.Kind == trace.Free {
			freed[e.ID] = i
		}
	}
	events := slices.Clone(tr.Events)
	for i := step.First; i < step.End; i++ {
		if e := &events[i]; e.Kind == trace.Alloc && i < freed[e.ID] {
			e.Size = (e.Size + e.Size/4 + 511) &^ 511
		}
	}
	b := trace.NewBuilder(trace.Header{})
	err := appendEvents(b, tr, events)
	return b.Trace(), err
}

// inTurns returns the first events of x, the first of y, the rest of x and the rest of y. Every
// block is freed as in its own trace.
func inTurns(x, y *trace.Trace, firstOfX, firstOfY int) (*trace.Trace, error) {
	var names uint64
	for _, e := range x.Events {
		names = max(names, e.ID+1)
	}
	events := slices.Clone(y.Events)
	for i := range events {
		e := &events[i]
		if e.Slot != trace.NoSlot {
			e.ID += names
		}
		if e.Kind == trace.LiveAtStart {
			e.Kind = trace.Alloc // the trace has begun
		}
	}
	b := trace.NewBuilder(trace.Header{})
	for _, part := range []struct {
		of     *trace.Trace
		events []trace.Event
	}{{x, x.Events[:firstOfX]}, {y, events[:firstOfY]}, {x, x.Events[firstOfX:]}, {y, events[firstOfY:]}} {
		if err := appendEvents(b, part.of, part.events); err != nil {
			return nil, err
		}
	}
	return b.Trace(), nil
}

// appendEvents adds events with the tags of a trace and without times.
func appendEvents(b *trace.Builder, of *trace.Trace, events []trace.Event) error {
	for _, e := range events {
		e.Tag, e.Time = b.Tag(of.TagOf(&e)), trace.NoTime
		if err := b.Add(e); err != nil {
			return err
		}
	}
	return nil
}
