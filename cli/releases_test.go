package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/whatif"
)

// TestAcrossReleases names the releases that need more, and the first request that they place
// elsewhere.
func TestAcrossReleases(t *testing.T) {
	const file = "../examples/oom/chat.pickle.gz"
	words := strings.Join(strings.Fields(succeed(t, "whatif", "--across-releases", file)), " ")
	require.True(t, strings.HasPrefix(words, "Releases 2.4 to 2.11 and 2.13 to 2.15 need 250.00 MiB more than 2.12 with "+
		"the recorded settings: 16.10 GiB, not 15.85 GiB. What changed: "+
		"- From 2.9 to 2.10, with the recorded settings: every request is placed alike. "+
		"- From 2.11 to 2.12, with the recorded settings, 250.00 MiB less: event 231, a request of 21.86 MiB on stream 0, "+
		"is the first that is placed elsewhere on a device of 16.00 GiB. 2.12 takes "), words)
	require.Contains(t, words, "│ 2.4 to 2.11 with the recorded settings │ 16.10 GiB │ 16.10 GiB │ fails │")

	var r whatif.Result
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "whatif", "--json", "-", "--across-releases", file)), &r))
	require.Equal(t, whatif.ByRelease, r.Answer.Verdict)
	require.Len(t, r.Releases, 4)
	require.Equal(t, "2.12 with the recorded settings", r.Answer.Label)
	require.Equal(t, 231, r.Releases[2].Differs.Event)
	require.Equal(t, r.Recorded.Peak, r.Releases[1].Peak)

	csv := succeed(t, "whatif", "--csv", "-", "--across-releases", file)
	require.Equal(t, 4, strings.Count(csv, "\n"), "a head and three different rules")
	page := filepath.Join(t.TempDir(), "a.html")
	succeed(t, "whatif", "--html", page, "--across-releases", file)
	require.Contains(t, content(t, page), "What changed")
}

// TestAcrossReleasesOfSettings compares the recorded settings and no settings.
func TestAcrossReleasesOfSettings(t *testing.T) {
	path := write(t, "t.trace", "# vramyard-trace 1\n# framework=PyTorch\n"+
		"# config={\"conf\":\"large_segment_size_mb:32\"}\na 1 4MiB\na 2 24MiB\n")
	words := strings.Join(strings.Fields(succeed(t, "whatif", "--across-releases", path)), " ")
	require.True(t, strings.HasPrefix(words, "No release makes a difference with the recorded settings: releases 2.11 to "+
		"2.15 need 32.00 MiB. Releases 2.4 to 2.9 refuse these settings: caching: conf: large_segment_size_mb: rules 2.6 "+
		"have no such key. Release 2.10 refuses these settings: they came with 2.11. "), words)
	require.Contains(t, words, "No release makes a difference without any setting: releases 2.4 to 2.15 need 44.00 MiB.")
}

// TestAcrossReleasesOfAFraction: a call sets the fraction in every release, and a key from 2.11 on.
func TestAcrossReleasesOfAFraction(t *testing.T) {
	const events = "a 1 4MiB\na 2 24MiB\n"
	words := func(config string) string {
		path := write(t, "t.trace", "# vramyard-trace 1\n# framework=PyTorch\n# config="+config+"\n"+events)
		return strings.Join(strings.Fields(succeed(t, "whatif", "--across-releases", path)), " ")
	}
	call := words(`{"memory_fraction":0.5}`)
	require.True(t, strings.HasPrefix(call, "No release makes a difference with the recorded settings: releases 2.4 to "+
		"2.15 need 88.00 MiB. No release makes a difference without any setting: "), call)
	require.NotContains(t, call, "refuse")
	require.Contains(t, call, "From 2.9 to 2.10, with the recorded settings: ")
	key := words(`{"conf":"per_process_memory_fraction:0.5"}`)
	require.Contains(t, key, "with the recorded settings: releases 2.11 to 2.15 need 88.00 MiB.")
	require.Contains(t, key, "Release 2.10 refuses these settings: they came with 2.11.")
}

func TestAcrossReleasesRefuses(t *testing.T) {
	trace := write(t, "t.trace", "a 1 12MiB\n")
	other := write(t, "o.trace", "# vramyard-trace 1\n# framework=TensorFlow\na 1 12MiB\n")
	async := write(t, "p.trace", "# vramyard-trace 1\n# framework=PyTorch\n"+
		"# config={\"conf\":\"backend:cudaMallocAsync\"}\na 1 12MiB\n")
	grid := write(t, "g.yaml", "- strategy: bfc\n")
	for want, args := range map[string][]string{
		other + ": --across-releases: the run is recorded by TensorFlow: want one of PyTorch": {other},
		async + ": --across-releases: the run is recorded with the strategy async:keep: want": {async},
		"--grid: with --across-releases: want quick or full":                                  {"--grid", grid, trace},
	} {
		status, stdout, stderr := command(t, append([]string{"whatif", "--across-releases"}, args...)...)
		require.Equal(t, exitTrouble, status, want)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout)
	}
	out := succeed(t, "whatif", "--across-releases", "../harness/trace/torch/testdata/vectors/state_only.pickle.xz")
	require.True(t, strings.HasPrefix(out, "This file cannot answer that: "), out)
}
