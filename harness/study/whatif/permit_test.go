package whatif_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/strategies"
)

// resplit needs 160 MiB with PyTorch's defaults, 120 MiB with expandable segments, and 122 MiB with
// max_split_size_mb:64.
const (
	ofPyTorch = "# vramyard-trace 1\n# framework=PyTorch\n"
	resplit   = "a 1 100MiB\nf 1\na 2 61MiB\na 3 59MiB\n"
	onCard    = 130 * device.MiB
)

// answered asks about the trace with the quick grid.
func answered(t *testing.T, header string, n whatif.Needs) *whatif.Result {
	t.Helper()
	return search(t, read(t, header+resplit), quick(t), whatif.Options{Card: onCard, Needs: n})
}

// named returns the point with a label.
func named(t *testing.T, r *whatif.Result, label string) *whatif.Point {
	t.Helper()
	i := slices.IndexFunc(r.Runs, func(p whatif.Point) bool { return p.Label == label })
	require.GreaterOrEqual(t, i, 0, label)
	return &r.Runs[i]
}

// TestTheAnswerIsPermitted has one case for each kind of rules.
func TestTheAnswerIsPermitted(t *testing.T) {
	const expandable = "caching expandable_segments:True"
	r := answered(t, ofPyTorch, whatif.Needs{Features: []string{}})
	require.Equal(t, expandable, r.Answer.Label)
	require.Empty(t, r.Answer.Permits)
	require.Empty(t, r.Answer.Constraints, "the needs are given")

	r = answered(t, ofPyTorch, whatif.Needs{Features: []string{"rdma"}}) // an error
	require.NotContains(t, r.Answer.Label, "expandable")
	require.NotContains(t, strings.Join(r.Answer.Environment, " "), "expandable")
	require.Equal(t, "not permitted with rdma", r.Permit.Note(named(t, r, expandable)))
	require.Contains(t, r.Answer.Permits[0], "must work with rdma (--permit)")
	require.NotContains(t, strings.Join(r.Answer.Permits, "\n"), "monarch/pull/4756", "slow, but left out anyway")

	r = answered(t, ofPyTorch, whatif.Needs{Features: []string{"windows"}}) // ignored
	require.NotContains(t, r.Answer.Label, "expandable")
	require.Equal(t, "ignored with windows", r.Permit.Note(named(t, r, expandable)))
	require.Contains(t, strings.Join(r.Answer.Permits, "\n"), "\nwith windows, without effect: PyTorch for Windows")

	for version, slow := range map[string]bool{"2.4.1": true, "2.5.0": false, "2.15.0": false} {
		r = answered(t, ofPyTorch, whatif.Needs{Features: []string{"graphs"}, Torch: version})
		require.Equal(t, expandable, r.Answer.Label)
		require.Equal(t, version, r.Recorded.Version)
		text := strings.Join(r.Answer.Text, " ")
		require.Equal(t, slow, strings.Contains(text, "It is permitted at a cost with graphs."), text)
		require.Equal(t, slow, slices.ContainsFunc(r.Answer.Permits, func(s string) bool {
			return strings.HasPrefix(s, "Permitted at a cost: "+expandable) && strings.Contains(s, "\nwith graphs: ")
		}))
	}
}

// TestReasonsAreNamedOnce has settings with the same rules: they are named together, up to twenty
// of them, and each rule follows once.
func TestReasonsAreNamedOnce(t *testing.T) {
	r := answered(t, ofPyTorch, whatif.Needs{Serving: "vllm-sleep", Features: []string{"rdma"}})
	text := strings.Join(r.Answer.Permits, "\n")
	for _, rule := range r.Permit.Rules {
		n := strings.Count(text, rule.Says)
		require.True(t, n == 1 || n == 0 && rule.Kind == whatif.Slow, "%s: %d times", rule.ID, n)
	}
	heads := map[string]bool{}
	for _, s := range r.Answer.Permits {
		head, _, _ := strings.Cut(s, "\n")
		require.False(t, heads[head], "%q twice", head)
		heads[head] = true
		require.NotContains(t, head, " more")
	}

	var grid []setting.Setup
	for i := range 23 {
		grid = append(grid, lookup(t, "caching", fmt.Sprintf(`{"conf":"expandable_segments:True,max_split_size_mb:%d"}`, 20+i)))
	}
	needs := whatif.Needs{Features: []string{"rdma"}}
	r = search(t, read(t, ofPyTorch+resplit), grid, whatif.Options{Card: onCard, Needs: needs})
	require.Contains(t, strings.Join(r.Answer.Permits, "\n"), "; 3 more, which the table marks\nwith rdma: ")
}

// TestUnknownReleasesAreSaid asks with features whose rules depend on the release.
func TestUnknownReleasesAreSaid(t *testing.T) {
	const unknown = "The release of PyTorch is unknown, so the rules of all releases apply: --torch names it."
	for version, said := range map[string]bool{"": true, "2.7.1": false} {
		r := answered(t, ofPyTorch, whatif.Needs{Features: []string{"mempool"}, Torch: version})
		require.False(t, named(t, r, "caching expandable_segments:True").Permitted())
		require.Equal(t, said, slices.Contains(r.Answer.Permits, unknown))
	}
	r := answered(t, ofPyTorch, whatif.Needs{Features: []string{"mempool"}, Torch: "2.8.0"})
	require.True(t, named(t, r, "caching expandable_segments:True").Permitted())
}

// TestNothingIsPermitted has a grid of which no setting is permitted.
func TestNothingIsPermitted(t *testing.T) {
	grid := []setting.Setup{lookup(t, "caching", `{"conf":"expandable_segments:True"}`), lookup(t, "bestfit", "")}
	r := search(t, read(t, ofPyTorch+resplit), grid,
		whatif.Options{Card: onCard, Needs: whatif.Needs{Features: []string{"sleep", "mempool"}}})
	require.Equal(t, whatif.None, r.Answer.Verdict)
	require.True(t, strings.HasPrefix(strings.Join(r.Answer.Text, " "),
		"None: none of the permitted settings completes this run on a card of 130.00 MiB. With the recorded "+
			"settings it needs 160.00 MiB."), r.Answer.Text)
	require.Empty(t, r.Answer.Label)
}

// TestEveryProfile asks with each program.
func TestEveryProfile(t *testing.T) {
	for _, p := range whatif.Compatibility().Profiles {
		r := answered(t, ofPyTorch, whatif.Needs{Serving: p.Name})
		require.Equal(t, p.Framework, r.Recorded.Framework, p.Name)
		require.Len(t, r.Permit.Features, len(p.Features), p.Name)
		for _, f := range r.Permit.Features {
			require.Contains(t, p.Features, f.Name)
			require.Equal(t, "--serving", f.Why)
		}
		expandable := named(t, r, "caching expandable_segments:True").Permitted()
		switch p.Name {
		case "vllm", "vllm-sleep", "sglang", "trl-colocated", "megatron":
			require.False(t, expandable, p.Name)
		default:
			require.True(t, expandable, p.Name)
		}
		if p.Framework != "PyTorch" {
			require.NotContains(t, strings.Join(r.Answer.Environment, " "), "PYTORCH", p.Name)
		}
		for _, rule := range r.Permit.Rules {
			others := map[string]bool{"vLLM": true, "SGLang": true, "Megatron-LM": true}
			require.False(t, others[rule.Program] && rule.Program != p.Program, "%s: %s", p.Name, rule.ID)
		}
	}
	tensorflow := answered(t, ofPyTorch, whatif.Needs{Serving: "tensorflow", Features: []string{"mempool"}})
	require.True(t, named(t, tensorflow, "bestfit").Permitted(), "it replaces no allocator of PyTorch")
	comfyui := answered(t, ofPyTorch, whatif.Needs{Serving: "comfyui"})
	require.False(t, named(t, comfyui, "async:keep").Permitted())
	both := answered(t, ofPyTorch, whatif.Needs{Serving: "comfyui", Features: []string{"rdma"}})
	require.Len(t, both.Permit.Features, 2, "flags add up")
}

// TestTheFileShowsFeatures has a trace with private pools, recorded settings and a version.
func TestTheFileShowsFeatures(t *testing.T) {
	const pools = "# vramyard-trace 1\n# torch=2.4.1\npool begin 1\na 9 3MiB\npool end 1\n"
	r := answered(t, pools, whatif.Needs{})
	require.Equal(t, []string{"private pools"}, r.Permit.Shown)
	require.Len(t, r.Permit.Features, 1)
	require.Equal(t, "graphs", r.Permit.Features[0].Name)
	require.Equal(t, "private pools", r.Permit.Features[0].Why)
	require.Equal(t, "The file shows private pools.", r.Answer.Permits[0])
	require.Equal(t, "The settings must work with graphs (private pools).", r.Answer.Permits[1])
	require.Equal(t, whatif.Slow, named(t, r, "caching expandable_segments:True").Permit, "by the file's version")

	for _, n := range []whatif.Needs{{Features: []string{}}, {Features: []string{"sleep"}}, {Serving: "comfyui"}} {
		for _, f := range answered(t, pools, n).Permit.Features {
			require.NotEqual(t, "graphs", f.Name, "flags override the file")
		}
	}
	r = answered(t, pools, whatif.Needs{Torch: "2.9.1"})
	require.Empty(t, named(t, r, "caching expandable_segments:True").Permit, "the flag overrides the version of the file")
	require.Len(t, r.Permit.Features, 1)

	w, err := whatif.Survey(read(t, resplit))
	require.NoError(t, err)
	rec := whatif.RecordedIn(w)
	rec.Framework, rec.Config = "PyTorch", json.RawMessage(`{"conf":"expandable_segments:True"}`)
	rec.Setup, err = strategies.All().Lookup("caching", rec.Config)
	require.NoError(t, err)
	of := func(n whatif.Needs) *whatif.Result {
		r, err := whatif.Search(t.Context(), w, rec, quick(t), whatif.Options{Card: onCard, Needs: n})
		require.NoError(t, err)
		return r
	}
	for conf, shown := range map[string][]string{
		"max_split_size_mb:64": nil, "expandable_segments: True@load..": {"expandable segments"},
	} {
		other := rec
		other.Setup = lookup(t, "caching", `{"conf":"`+conf+`"}`)
		marked, err := whatif.Survey(read(t, "mark load\n"+resplit))
		require.NoError(t, err)
		r, err := whatif.Search(t.Context(), marked, other, nil, whatif.Options{})
		require.NoError(t, err)
		require.Equal(t, shown, r.Permit.Shown, conf)
	}
	r = of(whatif.Needs{})
	require.Equal(t, []string{"expandable segments"}, r.Permit.Shown)
	require.Equal(t, whatif.Carried, r.Answer.Verdict)
	require.Contains(t, r.Answer.Constraints[0].Text, "rdma, ipc (--permit rdma,ipc): PYTORCH_ALLOC_CONF=")
	r = of(whatif.Needs{Features: []string{"rdma"}})
	require.NotEqual(t, whatif.Carried, r.Answer.Verdict, "the recorded settings are not permitted")
	require.Contains(t, r.Answer.Permits, "The recorded settings do not.")
	r, err = whatif.Search(t.Context(), w, rec, quick(t), whatif.Options{Needs: whatif.Needs{Features: []string{"rdma"}}})
	require.NoError(t, err)
	require.Equal(t, whatif.NoCard, r.Answer.Verdict)
	require.Contains(t, strings.Join(r.Answer.Text, " "), "PYTORCH_ALLOC_CONF=max_split_size_mb:64 needs 122.00 MiB.")
}

// TestCommonConstraints compares the answer with those for common constraints.
func TestCommonConstraints(t *testing.T) {
	r := answered(t, ofPyTorch, whatif.Needs{})
	require.Equal(t, "caching expandable_segments:True", r.Answer.Label)
	require.Len(t, r.Answer.Constraints, 2, "CUDA graphs of torch.compile permit the first answer")
	for i, features := range [][]string{{"rdma", "ipc"}, {"sleep", "mempool"}} {
		c := r.Answer.Constraints[i]
		require.Equal(t, features, c.Features)
		p := named(t, answered(t, ofPyTorch, whatif.Needs{Features: features}), c.Label)
		require.True(t, p.Permitted())
		require.Equal(t, p.Need(), c.Need)
		require.Equal(t, strings.Join(features, ", ")+" (--permit "+strings.Join(features, ",")+"): "+c.Environment[0]+
			" needs ",
			c.Text[:strings.Index(c.Text, " needs ")+len(" needs ")])
		require.Equal(t, answered(t, ofPyTorch, whatif.Needs{Features: features}).Answer.Label, c.Label)
	}
	r = search(t, read(t, ofPyTorch+resplit), []setting.Setup{lookup(t, "bestfit", "")},
		whatif.Options{Card: onCard})
	require.Equal(t, whatif.Strategy, r.Answer.Verdict)
	var texts []string
	for _, c := range r.Answer.Constraints {
		require.Empty(t, c.Label)
		texts = append(texts, c.Text)
	}
	require.Equal(t, []string{
		"rdma, ipc (--permit rdma,ipc): none.", "sleep, mempool (--permit sleep,mempool): none.",
		"graph-trees (--permit graph-trees): none.",
	}, texts)
}

// TestConstraintsNameOtherPools has a MemPool that completes with expandable segments, or if it
// begins with its largest need.
func TestConstraintsNameOtherPools(t *testing.T) {
	grid := []setting.Setup{
		lookup(t, "caching", ""), lookup(t, "caching", `{"conf":"expandable_segments:True"}`),
	}
	of := func(features []string) whatif.Answer {
		return search(t, read(t, ofPyTorch+growing), grid,
			whatif.Options{Card: 70 * device.MiB, Needs: whatif.Needs{Features: features}}).Answer
	}
	a := of(nil)
	require.Equal(t, "caching expandable_segments:True", a.Label)
	c := a.Constraints[0]
	require.Equal(t, "rdma, ipc (--permit rdma,ipc): allocating 60.00 MiB first in the MemPool needs at most 60.00 MiB.",
		c.Text)
	require.Equal(t, whatif.Pooling, of(c.Features).Verdict)
	require.Equal(t, of(c.Features).Need, c.Need)
}

// TestConstraintsKeepABaseline has the recorded baseline of JAX, which no constraint rules out.
func TestConstraintsKeepABaseline(t *testing.T) {
	w, err := whatif.Survey(read(t, "# vramyard-trace 1\n# framework=JAX\n"+resplit))
	require.NoError(t, err)
	rec := whatif.RecordedIn(w)
	rec.Setup = lookup(t, "direct", "")
	r, err := whatif.Search(t.Context(), w, rec, []setting.Setup{lookup(t, "async:keep", "")}, whatif.Options{})
	require.NoError(t, err)
	require.Equal(t, whatif.NoCard, r.Answer.Verdict)
	require.Empty(t, r.Answer.Constraints, "the recorded settings are permitted with all")
}

// TestConstraintsLeaveTheAnswerAlone has recorded settings of TensorFlow whose regions grow, and a
// share of the card that needs nearly as large a card.
func TestConstraintsLeaveTheAnswerAlone(t *testing.T) {
	text := "# vramyard-trace 1\n# framework=TensorFlow\n"
	for i := range 55 {
		text += fmt.Sprintf("a %d 1100KiB\n", i)
	}
	w, err := whatif.Survey(read(t, text+"a 99 870MiB\n"))
	require.NoError(t, err)
	rec := whatif.RecordedIn(w)
	rec.Setup = lookup(t, "bfc:gc", "")
	grid := []setting.Setup{lookup(t, "bfc:tensorflow", `{"memory_fraction":0.94}`)}
	for _, features := range [][]string{nil, {}} {
		r, err := whatif.Search(t.Context(), w, rec, grid,
			whatif.Options{Card: 1000 * device.MiB, Needs: whatif.Needs{Features: features}})
		require.NoError(t, err)
		require.Equal(t, whatif.Carried, r.Answer.Verdict)
		require.Contains(t, r.Answer.Sure, "That is close: it leaves 4.00 MiB free, 0.4 % of the card.", features)
	}
}

// TestTheLeastShareIsTried has a share whose hundredfold is above a whole number.
func TestTheLeastShareIsTried(t *testing.T) {
	for size, share := range map[string]float64{"7MiB": 0.07, "256": 0.01} {
		w, err := whatif.Survey(read(t, "# vramyard-trace 1\n# framework=JAX\na 1 "+size+"\n"))
		require.NoError(t, err)
		grid := []setting.Setup{lookup(t, "bfc:jax", `{"memory_fraction":0.9}`)}
		r, err := whatif.Search(t.Context(), w, whatif.RecordedIn(w), grid, whatif.Options{Card: 100 * device.MiB})
		require.NoError(t, err)
		i := slices.IndexFunc(r.Runs, func(p whatif.Point) bool { return p.LeastShare })
		require.GreaterOrEqual(t, i, 0)
		require.InDelta(t, share, r.Runs[i].Setup(100*device.MiB).Share(), 1e-9, size)
	}
}

// lookup returns a setting of a strategy.
func lookup(t *testing.T, name, config string) setting.Setup {
	t.Helper()
	s, err := strategies.All().Lookup(name, json.RawMessage(config))
	require.NoError(t, err)
	return s
}

// TestNeedsAreParsed reads the texts of flags.
func TestNeedsAreParsed(t *testing.T) {
	names, err := whatif.ParseFeatures("rdma, graphs")
	require.NoError(t, err)
	require.Equal(t, []string{"rdma", "graphs"}, names)
	names, err = whatif.ParseFeatures("")
	require.NoError(t, err)
	require.Nil(t, names)
	names, err = whatif.ParseFeatures("none")
	require.NoError(t, err)
	require.NotNil(t, names)
	require.Empty(t, names)
	for text, want := range map[string]string{
		"rmda": `unknown feature "rmda": did you mean "rdma"? want one of rdma, ipc, `, "rdma,": `unknown feature "": want one of`,
		"none,rdma": `"none,rdma": "none" stands alone`, "rdma, none": `"rdma, none": "none" stands alone: want it or features`,
	} {
		_, err = whatif.ParseFeatures(text)
		require.ErrorContains(t, err, want)
	}
	_, err = whatif.ParseServing("vlm-sleep")
	require.ErrorContains(t, err, `unknown profile "vlm-sleep": did you mean "vllm-sleep"? want one of vllm, `)
	for _, version := range []string{"", "2.9", "2.9.1", "2.15.0+cu132", "2.6.0a0+git1234", "1.13.0a0"} {
		_, err = whatif.ParseTorch(version)
		require.NoError(t, err, version)
	}
	for _, version := range []string{"2", "v2.9", "2.9 ", "2.9.1;rm", "2..9", "latest"} {
		_, err = whatif.ParseTorch(version)
		require.ErrorContains(t, err, "want a version of PyTorch, such as 2.9.1", version)
	}
}
