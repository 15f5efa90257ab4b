package workload_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// perturbed returns a recorded trace and its perturbation.
func perturbed(t *testing.T, p workload.Perturbation) (from, to *trace.Trace) {
	t.Helper()
	from, err := workload.OpenRecording("meta_resnet50_b256")
	require.NoError(t, err)
	to, err = workload.Perturb(from, p)
	require.NoError(t, err)
	return from, to
}

// sizes returns the size of each block by its name.
func sizes(t *trace.Trace) map[uint64]device.Size {
	all := map[uint64]device.Size{}
	for _, e := range t.Events {
		if e.Kind == trace.Alloc {
			all[e.ID] = e.Size
		}
	}
	return all
}

// names returns the block of each event that has one.
func names(t *trace.Trace) (all []uint64) {
	for _, e := range t.Events {
		if e.Slot != trace.NoSlot {
			all = append(all, e.ID)
		}
	}
	return all
}

func TestPerturbationOfNothingKeepsEveryEvent(t *testing.T) {
	from, to := perturbed(t, workload.Perturbation{Seed: 5})
	require.Equal(t, len(from.Events), len(to.Events))
	for i := range from.Events {
		a, b := from.Events[i], to.Events[i]
		require.Equal(t, from.TagOf(&a), to.TagOf(&b))
		a.Tag, b.Tag = 0, 0
		require.Equal(t, a, b)
	}
}

// TestEachRateChangesItsRequests tests what every single change leaves, for several seeds.
func TestEachRateChangesItsRequests(t *testing.T) {
	for seed := range uint64(4) {
		from, dropped := perturbed(t, workload.Perturbation{Drop: 0.05, Seed: seed})
		all, left := sizes(from), sizes(dropped)
		missing := len(all) - len(left)
		require.InDelta(t, 0.05*float64(len(all)), missing, 5*math.Sqrt(0.05*float64(len(all))))
		var want []uint64 // the others, in their order
		for _, id := range names(from) {
			if _, kept := left[id]; kept {
				want = append(want, id)
			}
		}
		require.Equal(t, want, slices.DeleteFunc(names(dropped), func(id uint64) bool { return left[id] == 0 }))

		_, resized := perturbed(t, workload.Perturbation{Drop: 0.05, Resize: 0.5, Seed: seed})
		changed := 0
		for id, size := range sizes(resized) { // the same requests are dropped
			if left[id] == 0 || size < (all[id]+1)/2 || size > 2*all[id] {
				require.Failf(t, "wrong size", "block %d of %d bytes has %d", id, all[id], size)
			}
			if size != all[id] {
				changed++
			}
		}
		require.Len(t, sizes(resized), len(left))
		require.InDelta(t, len(left)/2, changed, 5*math.Sqrt(float64(len(left))))

		_, swapped := perturbed(t, workload.Perturbation{Swap: 0.05, Seed: seed})
		require.Equal(t, all, sizes(swapped))
		moved := 0
		for i := range from.Events {
			if from.Events[i].ID != swapped.Events[i].ID {
				moved++
			}
		}
		require.InDelta(t, 2*0.05*float64(len(all)), moved, 12*math.Sqrt(0.05*float64(len(all))))
	}
}

// TestInsertedRequestsAreTemporary counts the requests between an inserted one and its free.
func TestInsertedRequestsAreTemporary(t *testing.T) {
	from, to := perturbed(t, workload.Perturbation{Insert: 0.1, Seed: 3})
	known := sizes(from)
	born := map[uint64]int{}
	requests, inserted := 0, 0
	for _, e := range to.Events {
		switch _, old := known[e.ID]; {
		case e.Kind == trace.Alloc && old:
			requests++
		case e.Kind == trace.Alloc:
			require.Equal(t, "inserted", to.TagOf(&e))
			born[e.ID] = requests
			inserted++
		case e.Kind == trace.Free && !old:
			require.LessOrEqual(t, requests-born[e.ID], 64)
			delete(born, e.ID)
		}
	}
	require.Empty(t, born)
	require.InDelta(t, 0.1*float64(len(known)), inserted, 5*math.Sqrt(0.1*float64(len(known))))
}

func TestEvaluationComesWithTheMiddleStep(t *testing.T) {
	const text = "mark \"step 0\"\na 1 100\nf 1\nmark \"step 1\"\na 2 200\na 3 300\nf 2\nf 3\n"
	from, err := trace.Read(strings.NewReader(text), "t", trace.Options{})
	require.NoError(t, err)
	to, err := workload.Perturb(from, workload.Perturbation{Eval: 10, Seed: 1})
	require.NoError(t, err)
	var got strings.Builder
	for _, e := range to.Events {
		fmt.Fprintf(&got, "%v %d %d %s\n", e.Kind, e.ID, uint64(e.Size), to.TagOf(&e))
	}
	require.Equal(t, `mark 0 0 step 0
alloc 1 100 
free 1 0 
mark 0 0 inserted evaluation
alloc 4 200 inserted
alloc 5 300 inserted
free 4 0 
free 5 0 
mark 0 0 step 1
alloc 2 200 
alloc 3 300 
free 2 0 
free 3 0 
`, got.String())
}

func TestPerturbRefuses(t *testing.T) {
	from, err := workload.OpenRecording("meta_resnet50_b256")
	require.NoError(t, err)
	for want, p := range map[string]workload.Perturbation{
		"drop: -0.1: want a share from 0% to 100%":          {Drop: -0.1},
		"insert: 1.5: want a share from 0% to 100%":         {Insert: 1.5},
		"resize: NaN: want a share from 0% to 100%":         {Resize: math.NaN()},
		"swap: +Inf: want a share from 0% to 100%":          {Swap: math.Inf(1)},
		"insert-eval: -1: want a number of requests from 0": {Eval: -1},
	} {
		_, err := workload.Perturb(from, p)
		require.EqualError(t, err, want)
	}
}

// TestPerturbedTracesAreLegal perturbs a trace with everything at high rates: the builder accepts
// the result, and the same seed gives the same.
func TestPerturbedTracesAreLegal(t *testing.T) {
	for seed := range uint64(8) {
		p := workload.Perturbation{Drop: 0.3, Insert: 0.3, Resize: 0.3, Swap: 0.5, Eval: 300, Seed: seed}
		_, to := perturbed(t, p)
		_, again := perturbed(t, p)
		require.Equal(t, to, again)
		require.Equal(t, "drop=30% insert=30% resize=30% swap=50% insert-eval=300 seed="+fmt.Sprint(seed), p.String())
	}
}
