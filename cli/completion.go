package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/study/gate"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// values returns the completions of the flags of a name, which are the same in every
// command. A flag that takes several values separated by commas offers them after each comma.
func values(c setting.Catalogue) map[string]func() []string {
	return map[string]func() []string{
		"strategy":     c.Names,
		"strategies":   c.Names,
		"device":       deviceNames,
		"grid":         func() []string { return []string{gridQuick, gridFull} },
		"permit":       func() []string { return append(whatif.Compatibility().FeatureNames(), whatif.NoFeatures) },
		"serving":      func() []string { return whatif.Compatibility().ProfileNames() },
		"free-at":      func() []string { return []string{string(replay.AtCompleted), string(replay.AtRequested)} },
		"workloads":    workload.Names,
		"to":           writable,
		"update":       func() []string { return []string{string(gate.UpdateLower), string(gate.UpdateRaise)} },
		"kind":         kindNames,
		"dialect":      func() []string { return []string{"bfc", "xdl", "torch"} },
		"heuristics":   heuristicNames,
		"megengine":    releaseNames,
		"liveness":     remat.Livenesses,
		"trigger":      remat.Triggers,
		"defrag":       remat.DefragKinds,
		"parent-order": grid.ParentOrders,
	}
}

func deviceNames() []string {
	names := []string{"sim"}
	for _, c := range sim.Cards() {
		names = append(names, "sim:"+c.Name)
	}
	return names
}

func kindNames() (names []string) {
	for _, k := range chart.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// complete adds shell completions for the flags and arguments of every command below c.
func complete(c *cobra.Command, catalogue setting.Catalogue, values map[string]func() []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if of, ok := values[f.Name]; ok {
			several := strings.Contains(f.Usage, "separated by commas")
			err := c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string,
				cobra.ShellCompDirective) {
				return offered(of(), typed, several), cobra.ShellCompDirectiveNoFileComp
			})
			if err != nil {
				panic(err) // the flag is there, and this is the only place that registers
			}
		}
	})
	switch {
	case c.Name() == "strategies":
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, s := range catalogue {
				names = append(names, s.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
	case strings.Contains(c.Use, "TRACE"), strings.Contains(c.Use, "FILE"): // FILE may be a trace
		c.ValidArgsFunction = func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offered(corpus.Names(), typed, false), cobra.ShellCompDirectiveDefault // and files
		}
	}
	for _, sub := range c.Commands() {
		complete(sub, catalogue, values)
	}
}

// offered returns the names that begin with the typed text, or with its part behind the last comma
// if a flag takes several.
func offered(names []string, typed string, several bool) []string {
	before := ""
	if i := strings.LastIndex(typed, ","); several && i >= 0 {
		before, typed = typed[:i+1], typed[i+1:]
	}
	var all []string
	for _, n := range names {
		if strings.HasPrefix(n, typed) {
			all = append(all, before+n)
		}
	}
	return all
}
