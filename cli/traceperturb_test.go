package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTracePerturbWritesTheSameTraceAgain(t *testing.T) {
	path := write(t, "t.trace", stepped)
	for _, flags := range [][]string{
		{"--drop", "50%"}, {"--swap", "--insert", "0.5"}, {"--resize=1"}, {"--insert-eval", "3"},
	} {
		args := append([]string{"trace", "perturb", path, "-", "--seed", "7"}, flags...)
		require.Equal(t, succeed(t, args...), succeed(t, args...))
	}
	require.Contains(t, succeed(t, "trace", "perturb", path, "-", "--swap"), "# perturbed=swap=1% seed=1\n")
	require.Contains(t, succeed(t, "trace", "perturb", path, "-", "--insert-eval", "5"), `mark "inserted evaluation"
a 10 100 stream=1 tag=inserted
a 11 50 tag=inserted
f 10
f 11
mark "step 1" t=2000000000
`)
}

func TestTracePerturbRefusesWrongInput(t *testing.T) {
	path := write(t, "t.trace", stepped)
	out := filepath.Join(t.TempDir(), "o.trace")
	for want, flags := range map[string][]string{
		`--drop: "101%": want a share from 0% to 100%`:        {"--drop", "101%"},
		`--insert: "-1": want a share from 0% to 100%`:        {"--insert=-1"},
		`--resize: "NaN": want a share from 0% to 100%`:       {"--resize", "NaN"},
		`--swap: "all": want a share from 0% to 100%`:         {"--swap=all"},
		`--insert-eval: -3: want a number of requests from 0`: {"--insert-eval=-3"},
		"trace perturb: at least one of the flags in the group [drop insert resize swap insert-eval] is required: see " +
			`"vramyard trace perturb --help"`: {"--seed", "3"},
	} {
		status, _, stderr := command(t, append([]string{"trace", "perturb", path, out}, flags...)...)
		require.Equal(t, exitTrouble, status)
		require.Equal(t, "vramyard: "+want+"\n", stderr)
		_, err := os.Stat(out)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}
