package props_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/sequences.txt")

// TestSequencesDoNotChange compares the operations that two seeds generate for each strategy of the
// catalogue, and the calls and events that result, with testdata/sequences.txt. A change makes
// the seeds of earlier reports worthless.
func TestSequencesDoNotChange(t *testing.T) {
	const path = "testdata/sequences.txt"
	var text strings.Builder
	for _, name := range slices.Sorted(slices.Values(strategies.All().Names())) {
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		s := props.SubjectOfSetup(setup, sim.Config{Capacity: 2 * device.GiB, Align: 256})
		for seed := range int64(2) {
			text.WriteString(outcomeOf(t, s, seed))
		}
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(text.String(), "\n"),
		"go test ./props -run TestSequencesDoNotChange -rewrite")
}

// outcomeOf returns one line on the sequence of a seed: digests of its operations and of its
// recorded trace, and the numbers of calls.
func outcomeOf(t *testing.T, s props.Subject, seed int64) string {
	t.Helper()
	p, err := s.Profile(60)
	require.NoError(t, err)
	seq := draw(t, p, seed)
	recorded, err := props.TraceOf(s, seq)
	require.NoError(t, err)
	var events strings.Builder
	require.NoError(t, trace.Write(&events, recorded))
	r, err := props.Verify(s, props.Options{Sequences: 1, Operations: 60, Seed: seed})
	require.NoError(t, err)
	r.Elapsed = 0
	return fmt.Sprintf("%s seed %d: operations %.8x, trace %.8x, %v\n", s.Name, seed,
		sha256.Sum256([]byte(seq.Lines())), sha256.Sum256([]byte(events.String())), r)
}
