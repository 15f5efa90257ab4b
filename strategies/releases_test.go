package strategies_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/strategies/caching"
)

// differs lists the answers of releases that the rules of their release do not reproduce, with the
// reason.
var differs = map[string]string{
	"torch_2.0.1/roundup_div_1":            "one division turns rounding off, also to multiples of 512 bytes",
	"torch_2.3.1/roundup_div_1":            "one division turns rounding off, also to multiples of 512 bytes",
	"torch_2.3.1/expandable_private_pools": fixed,
	"torch_2.1.2/captures_seeds":           captured,
	"torch_2.1.2/captures_seeds_oom":       captured,
	"torch_2.4.1/captures_expandable":      fixed,
	"torch_2.5.1/micro_mempool":            unreleased,
	"torch_2.5.1/mempools":                 unreleased,
	"torch_2.5.1/mempools_expandable":      unreleased,
	"torch_2.10.0/micro_mempool_on_oom":    "cached memory is released before a MemPool with use_on_oom serves a request",
	"torch_2.13.0/nested_pools":            uncaptured,
	"torch_2.13.0/nested_pools_oom":        uncaptured,
	"torch_2.9.1/nested_pools":             order,
	"torch_2.10.0/nested_pools":            order,
	"torch_2.11.0/nested_pools":            order,
	"torch_2.11.0/nested_pools_oom":        order,
	"torch_2.12.1/nested_pools":            order,
	"torch_2.12.1/nested_pools_oom":        order,
}

// The reasons for differences of more than one trace.
const (
	fixed      = "segments of private pools do not grow"
	captured   = "each graph allocates its seed and offset on the captured stream"
	unreleased = "the end of use_mem_pool does not release the pool, so its memory stays"
	uncaptured = "one stream is redirected, but no graph is captured; here that counts as a capture"
)

// order is the reason for a difference in the history of inactive splits alone.
const order = "delayed frees of several streams completed in another order, which is that of a hash table"

// TestReleases replays the traces by the rules of each release, and compares every placement, call
// of the device, refusal and statistic with the release's own.
func TestReleases(t *testing.T) {
	_, all, err := vectors.Releases()
	require.NoError(t, err)
	left := maps.Clone(differs)
	for _, v := range all {
		delete(left, v.ID())
		t.Run(v.ID(), func(t *testing.T) {
			t.Parallel()
			switch why := differs[v.ID()]; why {
			case "":
			case order:
				for _, stat := range []string{"", "_bytes"} {
					for _, pool := range []string{"all", "small_pool", "large_pool"} {
						v.Lacks = append(slices.Clone(v.Lacks), "= stat inactive_split"+stat+"."+pool)
					}
				}
			default:
				t.Skip(why)
			}
			requireGolden(t, v, v.Config)
		})
	}
	require.Empty(t, left, "no such vectors")
}

// TestRuleSetsAreThoseOfTheReleases compares the ranges of releases in the rule sets with the
// releases that replayed the traces. Releases before the oldest range follow its rules with the
// exceptions of [differs].
func TestRuleSetsAreThoseOfTheReleases(t *testing.T) {
	releases, _, err := vectors.Releases()
	require.NoError(t, err)
	sets := caching.RuleSets()
	for i, set := range sets {
		var own []string
		for _, r := range releases {
			if r.Rules == set.Name && !torchenv.Older(r.Name, sets[0].From) {
				own = append(own, r.Name)
			}
		}
		require.NotEmpty(t, own, set.Name)
		require.True(t, strings.HasPrefix(own[0], set.From+"."), "%s begins with %s", set.Name, own[0])
		require.True(t, strings.HasPrefix(own[len(own)-1], set.To+"."), "%s ends with %s", set.Name, own[len(own)-1])
		require.True(t, i == 0 || torchenv.Older(sets[i-1].To, set.From))
	}
}

// TestReleasesTable compares the table of docs/strategies/caching.md with the vectors. To renew it:
//
//	go test ./strategies -run TestReleasesTable -rewrite
func TestReleasesTable(t *testing.T) {
	const path = "../docs/strategies/caching.md"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	const begin, end = "<!-- releases: begin -->\n", "<!-- releases: end -->"
	before, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, begin)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok, end)
	want := releasesTable(t)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, have, "go test ./strategies -run TestReleasesTable -rewrite")
}

// releasesTable returns a row for each release.
func releasesTable(t *testing.T) string {
	t.Helper()
	releases, _, err := vectors.Releases()
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("| PyTorch | rules | traces | equal | not equal | not replayed |\n|---|---|--:|--:|---|---|\n")
	for _, r := range releases {
		var not []string
		for trace, key := range r.Answers {
			// The vectors of the first release with these rules and answers are also those of the others.
			first := slices.IndexFunc(releases, func(o vectors.Release) bool {
				return o.Rules == r.Rules && o.Answers[trace] == key
			})
			if key != r.Rules && differs["torch_"+releases[first].Name+"/"+trace] != "" {
				not = append(not, "`"+trace+"`")
			}
		}
		slices.Sort(not)
		reasons := map[string]int{}
		for _, why := range r.Refused {
			reasons[why]++
		}
		var refused []string
		for _, why := range slices.Sorted(maps.Keys(reasons)) {
			refused = append(refused, fmt.Sprintf("%d: %s", reasons[why], why))
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %d | %s | %s |\n", r.Name, r.Rules, len(r.Answers), len(r.Answers)-len(not),
			strings.Join(not, ", "), strings.Join(refused, "; "))
	}
	return b.String()
}
