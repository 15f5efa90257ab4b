package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
)

// TestSleepFigures replays blocks that have segments of their own.
func TestSleepFigures(t *testing.T) {
	const mib = device.MiB
	for name, c := range map[string]struct {
		text string
		want replay.SleepFigures
	}{
		"two pauses, of which the last counts": {
			"live 1 30MiB tag=w\na 2 50MiB tag=kv\na 3 20MiB\npause kv\npause w\nmark x\nresume w\nresume kv\n",
			replay.SleepFigures{PeakAsleep: 80 * mib, PeakAwake: 100 * mib, HeldAsleep: 20 * mib},
		},
		"requests of others meanwhile": {
			"a 1 30MiB tag=w\npause w\na 2 40MiB\nf 2\ntrim\nresume\na 3 12MiB\n",
			replay.SleepFigures{PeakAsleep: 30 * mib, PeakAwake: 42 * mib, HeldAsleep: 40 * mib},
		},
		"a trim that belongs to the pause": {
			"a 1 30MiB tag=w\na 2 40MiB\nf 2\npause w\ntrim\nmark x\n",
			replay.SleepFigures{PeakAsleep: 30 * mib, PeakAwake: 70 * mib},
		},
		"a later trim": {
			"a 1 30MiB tag=w\na 2 40MiB\nf 2\npause w\nmark x\ntrim\n",
			replay.SleepFigures{PeakAsleep: 30 * mib, PeakAwake: 70 * mib, HeldAsleep: 40 * mib},
		},
		"the highest of two sleeps": {
			"a 1 30MiB\npause\nresume\na 2 40MiB tag=x\npause x\nresume x\nf 1\ntrim\npause\n",
			replay.SleepFigures{PeakAsleep: 40 * mib, PeakAwake: 70 * mib, HeldAsleep: 30 * mib},
		},
		"a request that finds no memory, and a free block": {
			"a 1 30MiB tag=w\na 2 2GiB tag=w\npause w\nresume w\nf 2\nf 1\npause w\n",
			replay.SleepFigures{PeakAsleep: 30 * mib, PeakAwake: 30 * mib, HeldAsleep: 30 * mib},
		},
	} {
		res, err := runChanged(t, c.text, "caching", replay.Options{})
		require.NoError(t, err, name)
		require.Equal(t, &c.want, res.Sleep, name)
		require.Zero(t, res.Ignored, name)
		watched, err := runChanged(t, c.text, "caching", replay.Options{
			Figures: true, Observe: func(replay.Observation) error { return nil },
		})
		require.NoError(t, err, name)
		require.Equal(t, res.Sleep, watched.Sleep, name)
	}
	res, err := runChanged(t, "a 1 5\n", "caching", replay.Options{})
	require.NoError(t, err)
	require.Nil(t, res.Sleep)
}
