package props_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
)

// firstFitSubject returns the test strategy with a planted bug.
func firstFitSubject(b bug) props.Subject {
	capacity := 48 * device.KiB
	if b == neverEnds {
		capacity = 28 * device.KiB // below the limit, so that the device refuses for good
	}
	return props.SubjectOf("first-fit", newFirstFit, b, sim.Config{Capacity: capacity, Align: 4096}, promise.Set{
		Quantum:     ffQuantum,
		Honours:     func(r alloc.Request) bool { return r.Align <= 4096 },
		MaxGrant:    func(r alloc.Request) device.Size { return r.Size + ffQuantum - 1 },
		MustMerge:   promise.MergeAll,
		ClassOf:     classOf,
		SearchOrder: promise.ByAddress,
		Serves: func(c alloc.Chunk, r alloc.Request) bool {
			return c.Size >= r.Size && (r.Align == 0 || c.Addr.IsAligned(r.Align))
		},
		Boundaries: []device.Size{ffRegion, ffLimit},
	})
}

func TestCorrectStrategyPasses(t *testing.T) {
	r, err := props.Verify(firstFitSubject(none), props.Options{})
	require.NoError(t, err)
	t.Log(r)
	assert.Equal(t, 2000, r.Sequences)
	for name, n := range map[string]int{
		"grants": r.Grants, "frees": r.Frees, "out of memory": r.OutOfMemory, "mistakes": r.Mistakes, "bad frees": r.BadFrees,
	} {
		assert.Greater(t, n, 1000, name)
	}
	r, err = props.VerifyFaults(firstFitSubject(none), props.Options{Sequences: 50})
	require.NoError(t, err)
	t.Log(r)
	assert.Greater(t, r.Faults, uint64(200))
}

// TestPlantedBugIsFound holds the suite itself to account: every bug must break the
// invariant that it is about, within the sequences of a short run, and must shrink to a
// sequence that a person can follow.
func TestPlantedBugIsFound(t *testing.T) {
	for b, want := range map[bug]props.Number{
		mergesNotLeft:      props.ICoalescing,
		mergesNotRight:     props.ICoalescing,
		losesRemainder:     props.ITiling,
		overlaps:           props.ITiling,
		grantsTooLittle:    props.IGrant,
		ignoresAlign:       props.IRequestAnswer,
		acceptsZero:        props.IRequestAnswer,
		acceptsOverflow:    props.IRequestAnswer,
		acceptsDoubleFree:  props.IFreeAnswer,
		acceptsInterior:    props.IFreeAnswer,
		refusesOften:       props.IHonest,
		forgetsTag:         props.ILabels,
		miscountsFrees:     props.ICounters,
		peakFollows:        props.ICounters,
		staleHole:          props.IHole,
		wrongClass:         props.IClass,
		wrongOrder:         props.ISearchOrder,
		hidesFree:          props.IFreeList,
		releasesOnFree:     props.IHolding,
		trimLies:           props.ITrim,
		trimKeeps:          props.ITrim,
		leaksOnClose:       props.IClose,
		worksAfterClose:    props.IClosed,
		exceedsLimit:       props.ILimit,
		dependsOnHistory:   props.IDeterminism,
		panicsOnManyFrees:  props.INoPanic,
		neverEnds:          props.ITerminates,
		walkGoesOn:         props.IWalk,
		checkFails:         props.ICheck,
		wrongReason:        props.IRecord,
		refusalChanges:     props.IClass,
		hidesRegion:        props.IRegions,
		strandsRequest:     props.IChunk,
		losesLiveOnFailure: props.IShown,
		reservesUncounted:  props.IDeviceAccount,
		leaksWhenDrained:   props.IAccounting,
	} {
		t.Run(string(b), func(t *testing.T) {
			_, err := props.Verify(firstFitSubject(b), props.Options{Sequences: 300, Seed: 1})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number, "%v", f)
			assert.LessOrEqual(t, len(f.Sequence), 12, "%v", f)
			requireRepeats(t, f)
		})
	}
}

// TestFaultBugIsFound plants bugs that show only when the device refuses one certain call.
func TestFaultBugIsFound(t *testing.T) {
	for b, want := range map[bug]props.Number{
		forgetsOnClose: props.IClose,
		leaksOnFault:   props.IRegions,
	} {
		t.Run(string(b), func(t *testing.T) {
			_, err := props.VerifyFaults(firstFitSubject(b), props.Options{Sequences: 100, Tries: 300})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number, "%v", f)
			requireRepeats(t, f)
		})
	}
}

// requireFailure returns the failure that err must be.
func requireFailure(t *testing.T, err error) *props.Failure {
	t.Helper()
	var f *props.Failure
	require.ErrorAs(t, err, &f, "the bug was not found")
	t.Log(f)
	var v *props.Violation
	require.True(t, errors.As(err, &v))
	require.Positive(t, f.Step)
	return f
}

// requireRepeats checks that the trace of a failure is accepted by the reader of traces
// and holds as many requests as the shrunken sequence.
func requireRepeats(t *testing.T, f *props.Failure) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, f.WriteTrace(&file))
	read, err := trace.Read(bytes.NewReader(file.Bytes()), "failure.trace", trace.Options{})
	require.NoError(t, err, file.String())
	require.Equal(t, f.Trace.Events, read.Events, file.String())
	require.Equal(t, f.Trace.Slots, read.Slots)
}

// TestOneBugShrinksAcrossInvariants has a strategy that miscounts five blocks, and always lies
// about a trim. Only a counterexample of one known bug may go from the one to the other.
func TestOneBugShrinksAcrossInvariants(t *testing.T) {
	subject := firstFitSubject(trimLies)
	inner := subject.New
	subject.New = func(src device.Source) (alloc.Strategy, error) {
		s, err := inner(src)
		return &liar{firstFit: s.(*firstFit)}, err
	}
	crossed := false
	for seed := range int64(20) {
		var f *props.Failure
		_, err := props.Verify(subject, props.Options{Sequences: 20, Seed: seed, OneBug: true})
		require.ErrorAs(t, err, &f)
		require.LessOrEqual(t, len(f.Sequence), 2)
		_, err = props.Verify(subject, props.Options{Sequences: 20, Seed: seed})
		require.ErrorAs(t, err, &f)
		crossed = crossed || f.Violation.Number == props.ICounters && len(f.Sequence) == 5
	}
	require.True(t, crossed)
}
