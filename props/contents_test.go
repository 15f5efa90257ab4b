package props_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
)

func TestCorrectStrategyKeepsContents(t *testing.T) {
	r, err := props.Verify(firstFitSubject(none).Filled(), props.Options{Sequences: 300})
	require.NoError(t, err)
	require.Greater(t, r.Frees, 1000)
	r, err = props.VerifyFaults(firstFitSubject(none).Filled(), props.Options{Sequences: 20})
	require.NoError(t, err)
	require.Positive(t, r.Faults)
	require.Equal(t, "first-fit/filled", firstFitSubject(none).Filled().Filled().Name)
	require.Equal(t, sim.Filled, firstFitSubject(none).Filled().Device.Memory)
}

// TestCorruptionIsFound looks at nothing but what is in the memory. What is found says so, and
// its trace shows it again.
func TestCorruptionIsFound(t *testing.T) {
	for _, b := range []bug{overlaps, acceptsInterior, losesLiveOnFailure} {
		t.Run(string(b), func(t *testing.T) {
			subject := firstFitSubject(b).ByContents()
			_, err := props.Verify(subject, props.Options{Sequences: 300, Seed: 1, Tries: 1000})
			f := requireFailure(t, err)
			require.Equal(t, props.IContents, f.Violation.Number)
			require.Equal(t, "first-fit/filled", f.Subject)
			require.Contains(t, f.Violation.Detail, "grant ")
			device, ok := f.Trace.Header.Get("device")
			require.True(t, ok)
			require.Contains(t, device, `"memory":"filled"`)
			requireRepeats(t, f)
			if b != overlaps {
				return // a replay, which excuses nothing, ends before it is seen
			}
			var again *props.Violation
			require.ErrorAs(t, judged(t, subject, throughText(t, f)), &again)
			require.Equal(t, props.IContents, again.Number)
		})
	}
}

// TestContentsAreComparedFirst finds by contents what arithmetic finds in the same call.
func TestContentsAreComparedFirst(t *testing.T) {
	subject := firstFitSubject(losesLiveOnFailure)
	subject.Promises.Except = subject.ByContents().Promises.Except
	_, err := props.Verify(subject, props.Options{Sequences: 300, Seed: 1, Tries: 300})
	require.Equal(t, props.IDisjoint, requireFailure(t, err).Violation.Number)
	_, err = props.Verify(subject.Filled(), props.Options{Sequences: 300, Seed: 1, Tries: 300})
	require.Equal(t, props.IContents, requireFailure(t, err).Violation.Number)
}
