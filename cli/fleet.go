package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies/caching"
)

type fleetFlags struct{ whatifFlags }

func newFleet(catalogue setting.Catalogue) *cobra.Command {
	f := fleetFlags{whatifFlags{catalogue: catalogue}}
	c := &cobra.Command{
		Use:   "fleet FILE...",
		Short: "Find the rank that decides the card, and one setting for all ranks",
		Long: `Replay the recordings of the ranks of one run as whatif does, and report which rank decides the card, by how much
it exceeds the median and why, and the setting with which the rank that needs most needs least.

Each FILE is a rank, and so is each device of a file that holds several. The card is the one of --device, or else the
smallest one that a recorded failure shows. The order of the files does not matter. A rank whose file cannot answer is
named and left out.`,
		Example: "  vramyard fleet rank_*.pickle\n  vramyard fleet --device sim:h100-80g --html fleet.html rank_*.pickle",
		Args:    cobra.MinimumNArgs(1),
		RunE:    f.run,
	}
	f.addSearch(c)
	addMemory(c, &f.source.Memory)
	return c
}

// openRank is an opened recording of a rank.
type openRank struct {
	path, part string // part is empty for the only one
	name       string // unique
	trace      *whatif.SurveyedTrace
	recorded   whatif.Recorded
}

func (f *fleetFlags) run(cmd *cobra.Command, paths []string) error {
	paths = slices.Clone(paths)
	slices.SortFunc(paths, whatif.NaturalOrder)
	if err := f.files.check(append(slices.Clone(paths), f.grid)...); err != nil {
		return err
	}
	if err := onceFromStdin(paths); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	grid, err := f.readGrid()
	if err != nil {
		return flagError("grid", err)
	}
	opened, err := f.openRanks(cmd, paths)
	if err != nil {
		return err
	}
	grid, mixture, err := f.forRanks(opened, grid)
	if err != nil {
		return err
	}
	o.Card = cmp.Or(o.Card, smallestCard(opened))
	ctx, done := untilInterrupt(cmd)
	ranks, pools, err := search(ctx, cmd, opened, grid, o)
	done()
	if err != nil {
		return err
	}
	r := whatif.FleetOf(ranks, grid, pools)
	r.Text = append(r.Text, mixture...)
	f.files.figures(r, whatif.FleetTable(r))
	f.files.page(cmd, paths, func() (*page.Report, error) { return fleetPage(r) })
	return f.files.write(cmd.OutOrStdout(), func(w io.Writer) error { return report.Fleet(w, r) })
}

// openRanks opens the files, each device of a file as a rank. A rank has the name of its trace, or
// of its file where several traces have that name.
func (f *fleetFlags) openRanks(cmd *cobra.Command, paths []string) (all []openRank, err error) {
	for i, path := range paths {
		if slices.ContainsFunc(paths[:i], func(earlier string) bool { return sameFile(path, earlier) }) {
			return nil, fmt.Errorf("%s: named twice: want a file for each rank", path)
		}
		parts, err := f.openParts(cmd, path)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	count := map[string]int{}
	for i := range all {
		r := &all[i]
		r.name = strings.TrimSpace(r.trace.Head().Header.Name + " " + r.part)
		count[r.name]++
	}
	for i := range all {
		if r := &all[i]; count[r.name] > 1 {
			r.name = strings.TrimSpace(r.path + " " + r.part)
		}
	}
	return all, nil
}

// openParts opens a file, or every device that it holds.
func (f *fleetFlags) openParts(cmd *cobra.Command, path string) ([]openRank, error) {
	f.source.Part = ""
	w, rec, err := f.open(cmd, path)
	several, ok := errors.AsType[*trace.PartsError](err)
	switch {
	case !ok && err != nil:
		return nil, err
	case !ok:
		return []openRank{{path: path, trace: w, recorded: rec}}, nil
	case path == "-":
		return nil, fmt.Errorf("stdin: holds %s: want a file", units.Several(len(several.Parts), "part"))
	}
	all := make([]openRank, len(several.Parts))
	for i, p := range several.Parts {
		f.source.Part = p.Name
		if w, rec, err = f.open(cmd, path); err != nil {
			return nil, err
		}
		all[i] = openRank{path: path, part: p.Name, trace: w, recorded: rec}
	}
	return all, nil
}

// forRanks fits a grid to the recordings of all ranks, as withFramework does. If their
// releases of PyTorch have different rules, it takes the oldest ones, because every release has
// those settings, and returns a sentence about that.
func (f *fleetFlags) forRanks(all []openRank, grid []setting.Setup) (fit []setting.Setup, text []string, err error) {
	rec := &all[0].recorded
	if slices.ContainsFunc(all, func(r openRank) bool { return r.recorded.Framework != rec.Framework }) {
		return grid, nil, nil
	}
	var names []string
	for _, rules := range caching.RuleSets() {
		i := slices.IndexFunc(all, func(r openRank) bool { return recordedRules(&r.recorded, "") == rules.Name })
		if i < 0 {
			continue
		}
		if len(names) == 0 {
			rec = &all[i].recorded
		}
		names = append(names, rules.Name)
	}
	if len(names) > 1 && f.torch == "" {
		text = []string{fmt.Sprintf("The ranks are recorded by releases of PyTorch with different rules, those of %s, so "+
			"all settings but the recorded ones are replayed under the rules of %s.", strings.Join(names, " and "), names[0])}
	}
	fit, err = f.withFramework(rec, grid)
	return fit, text, err
}

// smallestCard returns the smallest capacity that a recorded failure shows, or 0.
func smallestCard(all []openRank) (n device.Size) {
	for _, r := range all {
		if c := r.recorded.Capacity; c != 0 && (n == 0 || c < n) {
			n = c
		}
	}
	return n
}

// search replays each rank. It reports whether one of them has private pools.
func search(ctx context.Context, cmd *cobra.Command, all []openRank, grid []setting.Setup, o whatif.Options) (
	ranks []whatif.Rank, pools bool, err error) {
	o.Memory = heapLeft()
	for i, r := range all {
		p := begin(cmd, stage{what: fmt.Sprintf("replaying rank %d of %d", i+1, len(all)), unit: "events"})
		o.Progress = func(done, most uint64) { p.reached(int64(done), int64(most)) }
		result, err := whatif.Search(ctx, r.trace, r.recorded, grid, o)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", r.path, err)
		}
		ranks = append(ranks, whatif.Rank{Name: r.name, Result: result})
		pools = pools || r.trace.Demand.Pools
	}
	return ranks, pools, nil
}

// fleetPage returns the page of a fleet: the answer in words, the ranks as a table and a picture,
// and all settings tried.
func fleetPage(r *whatif.Fleet) (*page.Report, error) {
	var text strings.Builder
	if err := report.Fleet(&text, r); err != nil {
		return nil, err
	}
	p := &page.Report{
		Kind: "fleet", Title: "What the ranks need", Texts: []page.Text{{Title: "Answer", Body: text.String()}},
		Sheets: []report.Sheet{report.FleetSheet(r)},
	}
	if len(r.All.Runs) > 0 {
		p.Sheets = append(p.Sheets, report.WhatIfSheet(r.All))
	}
	var needs []chart.Need
	for i := range r.Ranks {
		if rank := &r.Ranks[i]; rank.Need != 0 {
			needs = append(needs, chart.Need{Name: rank.Name, Live: rank.Live(), Rest: rank.Rest()})
		}
	}
	if len(needs) == 0 {
		return p, nil
	}
	var svg bytes.Buffer
	size := chart.Page{Width: chart.TwoColumns, Font: 8, Linked: true}
	err := chart.Needs(needs, r.All.Card).Write(&svg, chart.SVG, size)
	p.Plots = []page.Plot{{Title: "Need of each rank", SVG: svg.Bytes()}}
	return p, err
}
