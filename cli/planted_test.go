package cli

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
)

func TestPlantedWrongInput(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"config", []string{"--config", "{}"}, "--config: not with --planted"},
		{"contents", []string{"--contents"}, "--contents: not with --planted"},
		{"faults", []string{"--faults"}, "--faults: not with --planted"},
		{"folder", []string{"--out", "."}, "--out: not with --planted"},
		{"no strategies", []string{"--strategies", ","}, "--strategies: want at least one"},
		{"unknown strategy", []string{"--strategies", "bcf"}, `unknown strategy "bcf"`},
		{"unknown preset", []string{"--strategies", "buddy:fast"}, `unknown preset "fast" of buddy`},
		{"no tests", []string{"--tests", "0"}, "--tests: want 1 to "},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, append([]string{"check", "--planted"}, c.args...)...)
			require.Equal(t, exitTrouble, status, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
		})
	}
}

// TestPlantedNeedsTheSource has no source at hand to build the bugs from.
func TestPlantedNeedsTheSource(t *testing.T) {
	if planted.Enabled {
		t.Skip("needs a build without planted bugs")
	}
	t.Chdir(t.TempDir())
	status, stdout, stderr := command(t, "check", "--planted")
	require.Equal(t, exitTrouble, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "run go run ./cmd/vramyard check --planted")
}

// TestPlantedOfOneStrategy prints one line for each bug and how many were caught. Without
// bugs it has another build look for them. No bug of this strategy is in a package that many others
// import, so that little is compiled again.
func TestPlantedOfOneStrategy(t *testing.T) {
	if testing.Short() && !planted.Enabled {
		t.Skip("it links a program, which -short leaves out")
	}
	status, stdout, stderr := command(t, "check", "--planted", "--strategies", "bfc:textbook")
	require.Equal(t, exitDone, status, stderr)
	require.Regexp(t, `textbook/split-drops-prev +│ bfc:textbook +│ X2 `, stdout)
	require.NotContains(t, stdout, "bfc:growth")
	require.Regexp(t, `\ncaught (\d+) of (\d+)\n$`, stdout)
	if !planted.Enabled {
		require.Contains(t, stderr, "building the program with the planted bugs")
	}
}

// TestPlantedMissed looks for bugs in too few calls.
func TestPlantedMissed(t *testing.T) {
	if !planted.Enabled {
		t.Skip("needs a build with planted bugs")
	}
	status, stdout, stderr := command(t, "check", "--planted", "--strategies", "slab:blaze", "--tests", "1", "--ops", "1")
	require.Equal(t, exitFailed, status)
	require.Contains(t, stdout, "missed, want ")
	require.Regexp(t, `\d+ of \d+ planted bugs were missed`, stderr)
}

// TestPlantedEndsWithItsBudget looks for bugs that take longer than the budget.
func TestPlantedEndsWithItsBudget(t *testing.T) {
	all := make([]bugs.Bug, 5)
	looked := 0
	verdicts, err := lookFor(t.Context(), all, 20*time.Millisecond,
		func(ctx context.Context, b bugs.Bug) (check.Verdict, error) {
			if looked++; looked > 2 {
				<-ctx.Done()
				return check.Verdict{}, ctx.Err()
			}
			return check.Verdict{Bug: b}, nil
		})
	require.NoError(t, err)
	require.LessOrEqual(t, len(verdicts), 2)
	require.LessOrEqual(t, looked, 3)

	var out bytes.Buffer
	err = writeVerdicts(&out, []check.Verdict{{Bug: bugs.Bug{Breaks: []string{"I1"}}, Broken: "I1", Caught: true}}, 5)
	require.Equal(t, exitFailed, exitOf(err))
	require.Contains(t, out.String(), "caught 1 of 1\n4 of 5 bugs were not looked for: the search ends after 8m0s\n")
}
