package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

const twoPools = `# name=t
live 9 5
pool begin 4 stream=1
a 1 100 stream=1 tag=x
pool end 4
pool begin 7
a 2 200
f 2
pool end 7
pool release 7
f 1
pool release 4
`

// repooled returns the text of a trace with other pools.
func repooled(t *testing.T, text, way string) (string, error) {
	part, err := trace.Repool(read(t, text), way)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	require.NoError(t, trace.Write(&b, part))
	_, rest, _ := strings.Cut(b.String(), "\n")
	return rest, nil
}

func TestRepool(t *testing.T) {
	shared, err := repooled(t, twoPools, trace.PoolsShared)
	require.NoError(t, err)
	require.Equal(t, strings.NewReplacer("# name=t\n", "# name=t\n# repooled=share\n", "7", "4").Replace(twoPools), shared)
	merged, err := repooled(t, twoPools, trace.PoolsMerged)
	require.NoError(t, err)
	require.Equal(t, `# name=t
# repooled=merge
live 9 5
a 1 100 stream=1 tag=x
a 2 200
f 2
f 1
`, merged)
}

// TestRepoolAddsOptions adds an option to a pool that has the other one and to one that has it.
func TestRepoolAddsOptions(t *testing.T) {
	text := "# name=t\npool begin 4 stream=1 options=no_split\npool begin 5\na 1 100\npool end 4\n"
	for way, want := range map[string]string{
		trace.PoolUseOnOOM: "pool begin 4 stream=1 options=use_on_oom,no_split\npool begin 5 options=use_on_oom\n",
		trace.PoolNoSplit:  "pool begin 4 stream=1 options=no_split\npool begin 5 options=no_split\n",
	} {
		got, err := repooled(t, text, way)
		require.NoError(t, err)
		require.Equal(t, "# name=t\n# repooled="+way+"\n"+want+"a 1 100\npool end 4\n", got)
	}
}

func TestRepoolRefuses(t *testing.T) {
	for text, want := range map[string][2]string{
		twoPools: {"shared", `unknown way "shared" to change pools: did you mean "share"? want one of share, merge, ` +
			`largest-first, prime, use_on_oom, no_split`},
		"# name=t\na 1 5\n": {trace.PoolsMerged, "t: the trace has no private pools"},
		"# name=t\npool begin 1 stream=3\npool begin 2 stream=4\n": {trace.PoolsShared,
			"t: pools 1 and 2 are open at once and cannot be shared"},
	} {
		_, err := repooled(t, text, want[0])
		require.EqualError(t, err, want[1])
	}
}
