package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTraceClassesFeedAReplay(t *testing.T) {
	path := write(t, "t.trace", strings.Repeat("a 1 300\nf 1\n", 5)+"a 2 2000\nf 2\na 3 10MiB\nf 3\na 4 2300\n")
	out := succeed(t, "trace", "classes", path)
	require.JSONEq(t, `{"class_sizes":[512,2048,2304]}`, out, "every size has its own class if there are enough")
	out = succeed(t, "trace", "classes", "--count", "2", "--config", `{"quantum":512,"classes":"pow2"}`, path)
	require.JSONEq(t, `{"quantum":512,"class_sizes":[512,2560]}`, out)

	report := succeed(t, "replay", "--strategy", "slab", "--config", out, "--json", "-", path)
	var r struct {
		Config struct {
			ClassSizes []int `json:"class_sizes"`
		} `json:"config"`
		PeakAllocated int `json:"peak_allocated_bytes"`
	}
	require.NoError(t, json.Unmarshal([]byte(report), &r))
	require.Equal(t, []int{512, 2560}, r.Config.ClassSizes)
}

func TestTraceClassesRefuses(t *testing.T) {
	path := write(t, "t.trace", "a 1 10MiB\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "0 arguments: want "},
		{[]string{path}, "no request of the traces is small enough for a class"},
		{[]string{"--count", "0", path}, "--count: want at least 1"},
		{[]string{"--config", `{"compat":"xdl"}`, path}, `--config: slab: settings without size classes to learn`},
		{[]string{"--config", `{"clases":"pow2"}`, path}, `--config: configuration of slab: json: unknown field "clases"`},
		{[]string{path + ".gone"}, "no such file"},
	} {
		status, stdout, stderr := command(t, append([]string{"trace", "classes"}, c.args...)...)
		require.Equal(t, exitTrouble, status, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
}
