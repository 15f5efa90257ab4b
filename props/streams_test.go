package props_test

import (
	"strings"
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

// slottedSubject returns the test strategy with streams, with a bug, on a small device.
func slottedSubject(b bug) props.Subject {
	return props.Subject{
		Name: "slotted", Config: b, Device: sim.Config{Capacity: 16 * device.KiB, Align: slotSize},
		Promises: promise.Set{
			Quantum: slotSize,
			Honours: func(r alloc.Request) bool { return r.Align <= slotSize },
		},
		New: func(src device.Source) (alloc.Strategy, error) { return newSlotted(src, b) },
	}
}

func TestVerifyPassesStrategyWithStreams(t *testing.T) {
	subject := slottedSubject(none)
	r, err := props.Verify(subject, props.Options{Sequences: 500})
	require.NoError(t, err)
	t.Log(r)
	_, err = props.VerifyFaults(subject, props.Options{Sequences: 30})
	require.NoError(t, err)
	_, err = props.Metamorphic(subject, props.Options{Sequences: 200})
	require.NoError(t, err)
	_, err = props.Differential([]props.Subject{subject, subject}, props.Options{Sequences: 50})
	require.NoError(t, err)
	subject.Device.Clock = sim.Timed
	_, err = props.Verify(subject, props.Options{Sequences: 50})
	require.NoError(t, err, "a device on which work finishes by itself")
}

// TestVerifyFindsBugsOfStreams plants each bug, and replays the counterexample from its text.
func TestVerifyFindsBugsOfStreams(t *testing.T) {
	for b, want := range map[bug]props.Number{
		ignoresUses:     props.IPending,
		forgetsSecond:   props.IPending,
		marksAtUse:      props.IPending,
		crossesStreams:  props.IOrder,
		waitsOnWrong:    props.IOrder,
		reusesMark:      props.IOrder,
		pollsNothing:    props.IPending,
		pollsEverything: props.IOrder,
		pollLies:        props.IPending,
		freesPending:    props.IFreeAnswer,
		keepsEvents:     props.IClose,
		usesAfterFree:   props.IFreeAnswer,
	} {
		t.Run(string(b), func(t *testing.T) {
			subject := slottedSubject(b)
			_, err := props.Verify(subject, props.Options{Sequences: 300, Seed: 1, Tries: 1000})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number, "%v", f)
			assert.LessOrEqual(t, len(f.Sequence), 8, "%v", f)
			var again *props.Violation
			require.ErrorAs(t, judged(t, subject, throughText(t, f)), &again)
			assert.Equal(t, f.Violation.Number, again.Number, "%v", again)
		})
	}
}

// TestVerifyFaultsFindsBugsOfStreams does the same with those that show when a call is refused.
func TestVerifyFaultsFindsBugsOfStreams(t *testing.T) {
	for b, want := range map[bug]props.Number{
		losesUnrecorded:  props.IPending,
		pollHidesFault:   props.IFault,
		useSurfacesFault: props.IFreeAnswer,
	} {
		t.Run(string(b), func(t *testing.T) {
			_, err := props.VerifyFaults(slottedSubject(b), props.Options{Sequences: 100, Seed: 1, Tries: 300})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number, "%v", f)
		})
	}
}

// TestMetamorphicRenamesStreams gives the second instance other names for the streams.
func TestMetamorphicRenamesStreams(t *testing.T) {
	_, err := props.Metamorphic(slottedSubject(placesByStream), props.Options{Sequences: 300, Seed: 1})
	assert.Equal(t, props.IIndifference, requireFailure(t, err).Violation.Number)
}

// readTrace reads a text trace.
func readTrace(t *testing.T, text string) *trace.Trace {
	t.Helper()
	read, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return read
}

// TestJudgeFollowsDelayedFrees replays frees that become final later. A strategy with streams is
// told of a stream that delays them, and has to wait for it.
func TestJudgeFollowsDelayedFrees(t *testing.T) {
	delayed := readTrace(t, "a 1 9\na 2 9 stream=1\nf 2\na 3 9\ndone 2\na 4 9\nf 1\nf 4\ndone 1\ndone 4\npoll\nf 3\n"+
		"drain 0\ndrain 1\npoll\n")
	require.NoError(t, judged(t, slottedSubject(none), delayed))
	require.NoError(t, judged(t, firstFitSubject(none), delayed))
	requireBroken(t, props.IPending, judged(t, slottedSubject(ignoresUses), delayed))
	requireBroken(t, props.IPending, judged(t, slottedSubject(pollsNothing), delayed))
}

// TestJudgeLetsStreamsPass judges what sequences with streams were recorded as.
func TestJudgeLetsStreamsPass(t *testing.T) {
	subject := slottedSubject(none)
	p := props.Profile{
		Operations: 100, Quantum: slotSize, Max: slotSize, Room: slotSize * slotsEach * slotRegions, Streams: true,
		Poller: true,
	}
	kinds := map[trace.Kind]int{}
	for seed := range int64(50) {
		recorded, err := props.TraceOf(subject, draw(t, p, seed))
		require.NoError(t, err)
		for _, e := range recorded.Events {
			kinds[e.Kind]++
		}
		require.NoError(t, judged(t, subject, recorded), "seed %d", seed)
	}
	for _, k := range []trace.Kind{trace.Use, trace.Drain, trace.Poll} {
		require.Greater(t, kinds[k], 100, k)
	}
}
