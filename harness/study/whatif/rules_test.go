package whatif_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/strategies"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/whatif.md; review the difference")

// checkSource holds a link and a date to their form.
func checkSource(t *testing.T, source, id string) {
	t.Helper()
	link, err := url.Parse(source)
	require.NoError(t, err, id)
	require.Equal(t, "https", link.Scheme, id)
	require.NotEmpty(t, link.Host, id)
	require.Greater(t, strings.Count(strings.Trim(link.Path, "/"), "/"), 1, "%s: a page, not a site", id)
}

// TestRulesAreComplete checks every field of every entry of the table.
func TestRulesAreComplete(t *testing.T) {
	table := whatif.Compatibility()
	features, about := table.FeatureNames(), map[string]int{}
	require.GreaterOrEqual(t, len(table.Rules), 40)
	version := regexp.MustCompile(`^([0-9]+(\.[0-9]+)+)?$`)
	for i, r := range table.Rules {
		if i > 0 {
			require.Less(t, table.Rules[i-1].ID, r.ID, "sorted, and no name twice")
		}
		require.Regexp(t, `^[a-z0-9-]+$`, r.ID)
		require.NotEmpty(t, r.Settings, r.ID)
		require.Contains(t, []whatif.RuleKind{whatif.Fails, whatif.Ignored, whatif.Slow}, r.Kind, r.ID)
		require.Regexp(t, version, r.From, r.ID)
		require.Regexp(t, version, r.Below, r.ID)
		require.True(t, r.Below == "" || torchenv.Older(r.From, r.Below), r.ID)
		require.True(t, r.Unstated || r.From+r.Below != "", "%s: without bounds it says that they are not stated", r.ID)
		require.Regexp(t, `^[^\n]+\.$`, r.Says, r.ID)
		require.LessOrEqual(t, len(strings.Fields(r.Says)), 25, r.ID)
		checkSource(t, r.Source, r.ID)
		date, err := time.Parse(time.DateOnly, r.Checked)
		require.NoError(t, err, r.ID)
		require.Greater(t, date.Year(), 2025, r.ID)
		if r.Feature != "" {
			require.Contains(t, features, r.Feature, r.ID)
		}
		about[r.Feature]++
	}
	for _, f := range table.Features {
		require.NotZero(t, about[f.Name], "%s: no rule is about it", f.Name)
		require.NotEmpty(t, f.About, f.Name)
		require.Equal(t, slices.Index(features, f.Name), len(features)-1-slices.Index(reversed(features), f.Name), f.Name)
	}
	for _, p := range table.Profiles {
		checkSource(t, p.Source, p.Name)
		require.NotEmpty(t, p.About, p.Name)
		require.NotEmpty(t, p.Program, p.Name)
		require.Contains(t, []string{"PyTorch", "TensorFlow", "JAX"}, p.Framework, p.Name)
		for _, f := range p.Features {
			require.Contains(t, features, f, p.Name)
		}
	}
}

func reversed(names []string) []string {
	names = slices.Clone(names)
	slices.Reverse(names)
	return names
}

// ruled returns a setting that the text of a rule names, and the framework of its users.
func ruled(t *testing.T, text string) (s setting.Setup, framework string) {
	t.Helper()
	name, isStrategy := strings.CutPrefix(text, "strategy:")
	var err error
	switch {
	case text == "pluggable":
		s, err = strategies.All().Lookup("bestfit", nil)
	case isStrategy:
		s, err = strategies.All().Lookup(name, nil)
	case text == "backend:cudaMallocAsync":
		s, err = strategies.All().Lookup("async:keep", nil)
	case text == "TF_GPU_ALLOCATOR=cuda_malloc_async":
		framework = "TensorFlow"
		s, err = strategies.All().Lookup("async:keep", nil)
	case text == "XLA_PYTHON_CLIENT_ALLOCATOR=platform":
		framework = "JAX"
		s, err = strategies.All().Lookup("direct", nil)
	default:
		var items []string
		for item := range strings.SplitSeq(text, ",") {
			if !strings.Contains(item, ":") { // any value
				item += map[bool]string{true: ":0.5", false: ":64"}[strings.HasSuffix(item, "threshold")]
			}
			items = append(items, item)
		}
		var config []byte
		config, err = json.Marshal(map[string]string{"conf": strings.Join(items, ",")})
		require.NoError(t, err)
		s, err = strategies.All().Lookup("caching", config)
	}
	require.NoError(t, err, text)
	return s, cmp.Or(framework, "PyTorch")
}

// only asks about a trace of a framework with a single setting to try.
func only(t *testing.T, s setting.Setup, framework string, n whatif.Needs) (*whatif.Result, *whatif.Point) {
	t.Helper()
	w, err := whatif.Survey(read(t, "a 1 3MiB\na 2 30MiB\nf 1\na 3 4MiB\n"))
	require.NoError(t, err)
	rec := whatif.RecordedIn(w)
	rec.Framework = framework
	r, err := whatif.Search(t.Context(), w, rec, []setting.Setup{s}, whatif.Options{Card: gib, Needs: n})
	require.NoError(t, err)
	require.Len(t, r.Runs, 1)
	return r, &r.Runs[0]
}

// TestRulesForbidWhatTheySay asks about each setting of each rule: with the feature and in its
// range the rule holds, and its kind decides; without the feature or out of its range it does not.
func TestRulesForbidWhatTheySay(t *testing.T) {
	for _, rule := range whatif.Compatibility().Rules {
		for _, text := range rule.Settings {
			s, framework := ruled(t, text)
			needs := whatif.Needs{Features: []string{}}
			if rule.Feature != "" {
				needs.Features = []string{rule.Feature}
			}
			for _, version := range []string{"", within(rule)} {
				needs.Torch = version
				if framework != "PyTorch" {
					needs.Torch = ""
				}
				r, p := only(t, s, framework, needs)
				require.Contains(t, p.RuleIDs, rule.ID, text)
				switch rule.Kind {
				case whatif.Slow:
					require.NotEmpty(t, p.Permit, rule.ID)
				default:
					require.False(t, p.Permitted(), rule.ID)
					require.NotEqual(t, p.Label, r.Answer.Label, rule.ID)
					require.NotEmpty(t, r.Permit.Note(p), rule.ID)
					require.Contains(t, strings.Join(r.Answer.Permits, "\n"), rule.Says+" ("+rule.Versions()+") "+rule.Source)
				}
			}
			if rule.Feature != "" {
				_, p := only(t, s, framework, whatif.Needs{Features: []string{}})
				require.NotContains(t, p.RuleIDs, rule.ID, text)
			}
			for _, version := range outside(rule) {
				needs.Torch = version
				_, p := only(t, s, framework, needs)
				require.NotContains(t, p.RuleIDs, rule.ID, "%s with %s", text, version)
			}
		}
	}
}

// TestRulesReadEveryForm has settings that PyTorch reads like the ones that the rules name: with
// blanks, and for a phase.
func TestRulesReadEveryForm(t *testing.T) {
	for _, conf := range []string{
		"expandable_segments:True", "expandable_segments: True", " expandable_segments : True ,max_split_size_mb:64",
		"expandable_segments:True@load..", "expandable_segments:True@..loaded", "expandable_segments: True@load..loaded",
	} {
		grid := []setting.Setup{lookup(t, "caching", `{"conf":"`+conf+`"}`)}
		for feature, permitted := range map[string]bool{"rdma": false, "windows": false, "graph-trees": true} {
			r := search(t, read(t, ofPyTorch+"mark load\nmark loaded\n"+resplit), grid,
				whatif.Options{Card: onCard, Needs: whatif.Needs{Features: []string{feature}}})
			i := slices.IndexFunc(r.Runs, func(p whatif.Point) bool { return !p.Recorded })
			require.Equal(t, permitted, r.Runs[i].Permitted(), "%s with %s", conf, feature)
		}
	}
}

// TestBaselinesAreNotRecommendedAsSlow has the baseline, which no answer recommends.
func TestBaselinesAreNotRecommendedAsSlow(t *testing.T) {
	r, p := only(t, lookup(t, "direct", ""), "JAX", whatif.Needs{})
	require.Equal(t, whatif.Slow, p.Permit)
	require.Empty(t, r.Answer.Permits)
}

// within returns a version of PyTorch in the range of a rule.
func within(r whatif.Rule) string {
	if r.Program == "" && r.From != "" {
		return r.From + ".1"
	}
	if r.Program == "" && r.Below != "" {
		return "2.0.1"
	}
	return "2.9.1"
}

// outside returns versions of PyTorch out of the range of a rule.
func outside(r whatif.Rule) (versions []string) {
	if r.Program != "" {
		return nil
	}
	if r.From != "" {
		versions = append(versions, "1.13.1")
	}
	if r.Below != "" {
		versions = append(versions, r.Below+".0", "3.0")
	}
	return versions
}

// tables are the tables of docs/whatif.md that the table of compatibility fills.
func tables() string {
	t := whatif.Compatibility()
	var b strings.Builder
	b.WriteString("| feature | the deployment |\n|---|---|\n")
	for _, f := range t.Features {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, f.About)
	}
	b.WriteString("\n| `--serving` | is | needs |\n|---|---|---|\n")
	for _, p := range t.Profiles {
		features := "nothing in the table"
		if len(p.Features) > 0 {
			features = "`" + strings.Join(p.Features, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | [%s](%s) | %s |\n", p.Name, p.About, p.Source, features)
	}
	b.WriteString("\n| with | setting | kind | releases | because |\n|---|---|---|---|---|\n")
	for _, r := range t.Rules {
		feature := "anything"
		if r.Feature != "" {
			feature = "`" + r.Feature + "`"
		}
		releases := r.Versions()
		if r.Unstated {
			releases += ", not all stated"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s ([source](%s), %s) |\n", feature,
			strings.Join(r.Settings, "`, `"), r.Kind, releases, r.Says, r.Source, r.Checked)
	}
	return b.String()
}

// TestThePageHasTheRules holds the tables of docs/whatif.md to the table of compatibility.
func TestThePageHasTheRules(t *testing.T) {
	const path, begin, end = "../../../docs/whatif.md", "<!-- rules: begin -->\n", "<!-- rules: end -->"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(raw), begin)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	want := head + begin + tables() + end + tail
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, want == string(kept),
		"docs/whatif.md differs from rules.yaml: go test ./harness/study/whatif -run ThePageHasTheRules -rewrite")
}
