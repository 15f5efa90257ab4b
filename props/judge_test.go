package props_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
)

// judged replays a trace through the test strategy under the eyes of a judge.
func judged(t *testing.T, subject props.Subject, events *trace.Trace) error {
	t.Helper()
	build := func(src device.Source, _ struct{}) (alloc.Strategy, error) { return subject.New(src) }
	catalogue := setting.Catalogue{setting.SpecOf("first-fit", "", build, setting.Preset{})}
	setup, err := catalogue.Lookup("first-fit", nil)
	require.NoError(t, err)
	judge, err := props.NewJudge(subject, events)
	require.NoError(t, err)
	_, err = replay.Run(events, setup, judge.Device(), replay.Options{Observe: judge.Observe, Contents: judge.Contents()})
	return err
}

// throughText returns the trace of a failure as a reader of its file gets it.
func throughText(t *testing.T, f *props.Failure) *trace.Trace {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, f.WriteTrace(&file))
	read, err := trace.Read(&file, "failure.trace", trace.Options{})
	require.NoError(t, err)
	return read
}

// TestJudgeRepeatsFailure finds planted bugs and replays their traces: the same invariant
// must break again.
func TestJudgeRepeatsFailure(t *testing.T) {
	for _, b := range bugs {
		if b == dependsOnHistory {
			continue // how many instances there were before is not in the trace
		}
		t.Run(string(b), func(t *testing.T) {
			subject := firstFitSubject(b)
			_, err := props.Verify(subject, props.Options{Sequences: 300, Seed: 1, Tries: 300})
			f := requireFailure(t, err)
			var again *props.Violation
			require.ErrorAs(t, judged(t, subject, throughText(t, f)), &again)
			assert.Equal(t, f.Violation.Number, again.Number, "%v", again)
		})
	}
}

// TestJudgeRepeatsPlannedFault does the same where the trace's header plans the fault.
func TestJudgeRepeatsPlannedFault(t *testing.T) {
	for _, b := range []bug{forgetsOnClose, leaksOnFault} {
		t.Run(string(b), func(t *testing.T) {
			subject := firstFitSubject(b)
			_, err := props.VerifyFaults(subject, props.Options{Sequences: 100, Tries: 300})
			f := requireFailure(t, err)
			var again *props.Violation
			require.ErrorAs(t, judged(t, subject, throughText(t, f)), &again)
			assert.Equal(t, f.Violation.Number, again.Number, "%v", again)
		})
	}
}

// TestJudgeLetsCorrectStrategyPass judges what correct sequences were recorded as.
func TestJudgeLetsCorrectStrategyPass(t *testing.T) {
	subject := firstFitSubject(none)
	p := props.Profile{Operations: 100, Quantum: ffQuantum, Max: ffLimit, Room: ffLimit}
	for seed := range int64(50) {
		recorded, err := props.TraceOf(subject, draw(t, p, seed))
		require.NoError(t, err)
		require.NoError(t, judged(t, subject, recorded), "seed %d", seed)
	}
}

// bugs are those that a run without planned faults finds.
var bugs = []bug{
	mergesNotLeft, mergesNotRight, losesRemainder, overlaps, grantsTooLittle, ignoresAlign, acceptsZero,
	acceptsOverflow, acceptsDoubleFree, acceptsInterior, refusesOften, forgetsTag, miscountsFrees, peakFollows,
	staleHole, wrongClass, wrongOrder, hidesFree, releasesOnFree, trimLies, trimKeeps, leaksOnClose,
	worksAfterClose, exceedsLimit, dependsOnHistory, panicsOnManyFrees, neverEnds, walkGoesOn, checkFails,
	wrongReason, refusalChanges, hidesRegion, strandsRequest, losesLiveOnFailure, reservesUncounted,
	leaksWhenDrained,
}
