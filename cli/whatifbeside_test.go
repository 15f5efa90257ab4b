package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
)

// engine sleeps with 20 MiB of 100 MiB in hand.
const engine = "a 1 30MiB tag=w\na 2 50MiB tag=kv\na 3 20MiB\npause kv\npause w\nresume w\nresume kv\n"

// TestWhatifBesideASleepingProgram has runs that fit and that do not, on a card of 120 MiB.
func TestWhatifBesideASleepingProgram(t *testing.T) {
	sleeps := write(t, "engine.trace", engine)
	for text, want := range map[string]struct {
		verdict  whatif.Verdict
		sentence string
	}{
		"a 1 90MiB\n": {whatif.Strategy,
			"The largest program that fits beside it needs 100.00 MiB, 10.00 MiB (11.1 %) more than this one."},
		"a 1 90MiB\na 2 20MiB\n": {whatif.TooLittle,
			"None: the live bytes alone need 110.00 MiB, and engine leaves 100.00 MiB while it sleeps."},
		"a 1 90MiB\na 2 30MiB\n": {whatif.TooLittle,
			"The largest program that fits beside it needs 100.00 MiB, 20.00 MiB (16.7 %) less than this one."},
	} {
		r := whatifJSON(t, "--device", "sim:120MiB", "--beside", sleeps, write(t, "run.trace", text))
		require.Equal(t, want.verdict, r.Answer.Verdict, text)
		require.Contains(t, r.Answer.Text, want.sentence)
		require.Equal(t, 100*device.MiB, r.Card)
		require.Equal(t, 120*device.MiB, r.Beside.Card)
		require.Equal(t, 20*device.MiB, r.Beside.HeldAsleep)
		require.Equal(t, 80*device.MiB, r.Beside.PeakAsleep)
		require.Equal(t, "caching", r.Beside.Strategy)
		require.Contains(t, strings.Join(r.Answer.Text, " "), "With the strategy caching, engine holds at most 20.00 MiB of "+
			"120.00 MiB while 80.00 MiB of it sleep.")
		require.Contains(t, strings.Join(r.Answer.Sure, " "), "The CUDA context of each program stays on the card")
		require.NotContains(t, strings.Join(r.Answer.Text, " "), "listed card")
	}
}

// TestWhatifBesideReplaysTheRecordedSettings has a sleeping program whose settings round up.
func TestWhatifBesideReplaysTheRecordedSettings(t *testing.T) {
	run := write(t, "run.trace", "a 1 90MiB\n")
	for header, want := range map[string]device.Size{
		"": 20 * device.MiB, "# config={\"conf\":\"roundup_power2_divisions:2\"}\n": 24 * device.MiB,
	} {
		r := whatifJSON(t, "--device", "sim:1GiB", "--beside", write(t, "engine.trace", header+engine), run)
		require.Equal(t, want, r.Beside.HeldAsleep)
	}
	succeed(t, "whatif", "--device", "sim:1GiB", "--torch", "2.9", "--beside",
		write(t, "engine.trace", "# framework=JAX\n"+engine), run) // the release is of the run
}

func TestWhatifBesideRefuses(t *testing.T) {
	sleeps, run := write(t, "engine.trace", engine), write(t, "run.trace", "a 1 5MiB\n")
	untagged := write(t, "untagged.trace", "a 1 5MiB tag=weights\npause weight\n")
	all := write(t, "all.trace", "a 1 4MiB tag=w\npause w\nresume w\nf 1\na 2 120MiB\npause w\n")
	wrong := write(t, "wrong.trace", "a 1 5\nresume\n")
	const beside = ": --beside: "
	for want, args := range map[string][]string{
		beside + "neither file has the capacity of the card: name":         {sleeps, run},
		beside + "with caching the program does not complete on 60.00 MiB": {sleeps, "--device", "sim:60MiB", run},
		beside + "the program never sleeps: want a trace with pause lines": {run, "--device", "sim:60MiB", run},
		beside + "no live block has a paused tag: want ":                   {untagged, "--device", "sim:60MiB", run},
		beside + "nothing of the card is left":                             {all, "--device", "sim:120MiB", run},
		beside[2:] + "answers another question than --across-releases":     {sleeps, "--across-releases", run},
		"standard input can be read only once":                             {"-", "-"},
		"no/such/file":                                                     {"no/such/file", run},
		"wrong.trace:2: nothing is paused":                                 {wrong, run},
		sleeps + " is a file to read":                                      {sleeps, "--json", sleeps, run},
	} {
		status, stdout, stderr := command(t, append([]string{"whatif", "--beside"}, args...)...)
		require.Equal(t, exitTrouble, status, want)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Empty(t, stdout)
	}
}
