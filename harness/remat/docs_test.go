package remat_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/remat.md")

// costs returns what moving takes by default, as the page has it.
func costs() string {
	c := remat.DefaultMoveCosts()
	var b strings.Builder
	b.WriteString("| what | figure | source |\n|---|--:|---|\n")
	row := func(what, unit, source string, figure float64) {
		fmt.Fprintf(&b, "| %s | %g %s | %s |\n", what, figure, unit, source)
	}
	const calls = "[published costs](device-model.md) of "
	row("bus", "GB/s", "PCI Express 4.0, 16 lanes: 16 GT/s, 128 of 130 bits", float64(c.PCIe/1e6)/1e3)
	row("memory", "GB/s", "data sheet of an A100 of 80 GB", float64(c.HBM)/1e9)
	row("launch", "µs", calls+"fill", float64(c.Launch)/1e3)
	row("wait for the device", "µs", calls+"sync-device", float64(c.Sync)/1e3)
	row("free and allocation", "µs", calls+"alloc-async and free-async", float64(c.Alloc)/1e3)
	row("remap, each block", "µs", calls+"unmap and set-access", float64(c.Remap)/1e3)
	row("remap, each page of "+c.Page.String(), "µs", calls+"map, and of pages for unmap and set-access",
		float64(c.Map)/1e3)
	return b.String()
}

// formulas returns the heuristics and the symbols of their scores, as the page has them.
func formulas() string {
	var b strings.Builder
	b.WriteString("| heuristic | score | evicts first | source |\n|---|---|---|---|\n")
	for _, h := range remat.Heuristics() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", h.Name, h.Formula(), h.Prefers, h.Source)
	}
	b.WriteString("\n| symbol | meaning |\n|---|---|\n")
	for _, s := range remat.Symbols() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s.Name, s.Meaning)
	}
	return b.String()
}

// score returns the settings of MegEngine's score, as the page has them.
func score() string {
	var b strings.Builder
	b.WriteString("| setting | meaning | values | in MegEngine's code |\n|---|---|---|--:|\n")
	for _, s := range remat.ScoreSettings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.Meaning, s.Want, s.Default)
	}
	return b.String()
}

// swapSettings returns the settings of swapping, as the page has them.
func swapSettings() string {
	var b strings.Builder
	b.WriteString("| setting | meaning | values | without it |\n|---|---|---|---|\n")
	for _, s := range remat.EvictionSettings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.Meaning, s.Want, s.Default)
	}
	return b.String()
}

// swapTimes returns the times of runs that drop, swap, or do what is cheaper.
func swapTimes(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| log | budget | `drop`, late | `swap`, late | `cheaper`, late " +
		"| `drop`, ahead | `swap`, ahead | `cheaper`, ahead |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, model := range []string{"syn_resnet110", "syn_transformer6", "syn_unet4"} {
		s := logOf(t, model)
		peak := peakOf(t, s, "eager")
		for _, tenths := range []device.Size{3, 5, 8} {
			budget := peak * tenths / 10
			fmt.Fprintf(&b, "| %s | 0.%d |", strings.ReplaceAll(model, "_", " "), tenths)
			for _, trigger := range []string{"room", "threshold"} {
				for _, evict := range []string{"drop", "swap", "cheaper"} {
					res := play(t, s, budget, remat.Config{Heuristic: "eq:evict=" + evict, Liveness: "eager", Limit: s.Cost,
						Trigger: remat.Trigger{Kind: trigger, Bytes: budget * 8 / 10}})
					if res.Verdict != remat.OK {
						b.WriteString(" — |")
						continue
					}
					fmt.Fprintf(&b, " %.2f |", float64(res.Clock)/float64(s.Cost))
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// plans returns the plans, as the page has them.
func plans() string {
	var b strings.Builder
	b.WriteString("| plan | keeps | source |\n|---|---|---|\n")
	for _, p := range remat.Plans() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, p.Keeps, p.Source)
	}
	return b.String()
}

// releases returns the settings and the quirks of MegEngine's releases, as the page has them.
func releases(t *testing.T) string {
	all := grid.Releases()
	var b strings.Builder
	row := func(what string, of func(grid.Release) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, r := range all {
			fmt.Fprintf(&b, " %s |", of(r))
		}
		b.WriteString("\n")
	}
	row("behavior", func(r grid.Release) string { return r.Name })
	fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---|", len(all)))
	row("`--heuristics`", func(r grid.Release) string { return "`" + r.Heuristic + "`" })
	row("`--liveness`", func(r grid.Release) string { return "`" + r.Liveness + "`" })
	row("`--trigger`", func(r grid.Release) string { return "`" + r.Trigger + "`" })
	row("`--ladders`", func(r grid.Release) string { return "`" + r.Ladder + "`" })
	row("`--defrag`", func(r grid.Release) string { return "`" + r.Defrag + "`" })
	row("`--sampling`", func(r grid.Release) string { return "`" + r.Sampling + "`" })
	row("`--min-evictee`", func(r grid.Release) string { return "`" + r.MinEvictee + "`" })
	for _, q := range [][2]string{
		{"q1", "neighbors are inputs and outputs of the producer only, not consumers"},
		{"q2", "the own cost is not in the score"},
		{"q3", "a component counts once for each neighbor in it"},
		{"q4", "a component counts as at least the cost of the neighbor in it"},
		{"q5", "a recomputed tensor leaves its component as a root, with the nodes below it"},
		{"q6", "outputs that stayed in memory leave their component when their operator reruns"},
		{"q7", "`--sampling mge` sees half of the candidates, some twice"},
		{"q8", "free memory above a block is looked for at the end of the requested bytes, so rounding hides it"},
		{"q9", "free bytes of the next region count as adjacent"},
		{"vector", "the last candidate replaces a removed one; the first of equal scores is evicted"},
		{"uncounted", "recomputations are not counted, so `again` has no effect"},
	} {
		row("`"+q[0]+"`: "+q[1], func(r grid.Release) string {
			set, err := remat.ParseQuirks(r.Quirks)
			require.NoError(t, err)
			one, err := remat.ParseQuirks(q[0])
			require.NoError(t, err)
			if set&one == 0 {
				return "no"
			}
			return "yes"
		})
	}
	return b.String()
}

func TestThePageHasCostsAndFormulas(t *testing.T) {
	const path = "../../docs/remat.md"
	for name, want := range map[string]string{"costs": costs(), "formulas": formulas(), "score": score(),
		"plans": plans(), "releases": releases(t), "choices": remat.Choices(t),
		"swap settings": swapSettings(), "swap times": swapTimes(t)} {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		head, rest, ok := strings.Cut(string(raw), "<!-- begin "+name+" -->\n")
		require.True(t, ok, name)
		table, tail, ok := strings.Cut(rest, "<!-- end "+name+" -->")
		require.True(t, ok, name)
		if *rewrite {
			page := head + "<!-- begin " + name + " -->\n" + want + "<!-- end " + name + " -->" + tail
			require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
			continue
		}
		require.Equal(t, want, table, "run the test with -rewrite")
	}
}
