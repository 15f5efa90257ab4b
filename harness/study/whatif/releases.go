package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// Releases are the same settings under the rules of each range of releases, oldest first.
type Releases struct {
	Settings string         // ends a sentence, as in "with the recorded settings"
	Ranges   []ReleaseRange // oldest first
}

// ReleaseRange is consecutive releases with the same rules.
type ReleaseRange struct {
	From, To string        // first and last release
	Setup    setting.Setup // the settings under these rules; no name: see Refused
	Refused  string        // why the releases refuse the settings
	Changes  []string      // sentences: changes from the range before that can affect the trace
}

// ReleaseResult is the outcome of settings under the rules of a range of releases.
type ReleaseResult struct {
	Settings string `json:"settings"`             // "with the recorded settings"
	From     string `json:"first_release"`        // first release of the range
	To       string `json:"last_release"`         // last release of the range
	Refused  string `json:"refused,omitempty"`    // why the releases refuse the settings; then there are no figures
	Label    string `json:"label,omitempty"`      // label of the run with the figures
	Exact    bool   `json:"is_minimum,omitempty"` // Need is the minimum capacity
	// a sufficient capacity, the least one if the search has finished; 0: none is known
	Need device.Size `json:"need_bytes"`
	// Peak is the peak of reserved bytes on one device for all releases, the card or an ample one.
	Peak device.Size `json:"peak_reserved_bytes"`
	// Changes are the changes from the range before that can affect the trace, as sentences.
	Changes []string `json:"changes,omitempty"`
	// first request that the range before places elsewhere; absent: none, or the oldest range
	Differs *Difference `json:"first_difference,omitempty"`
}

// Difference is the first request that two ranges of releases place differently.
type Difference struct {
	Event   int           `json:"event"`             // index in the trace
	Size    device.Size   `json:"bytes"`             // requested bytes
	Stream  device.Stream `json:"stream"`            // of the request
	On      device.Size   `json:"capacity_bytes"`    // of the device of both replays
	Refused string        `json:"refused,omitempty"` // "before" or "after": only that range refuses it
}

// refused is the place of a refused request.
const refused = ^device.Addr(0)

// AcrossReleases replays a trace under the rules of each range of releases, searches the minimum
// capacity of each, and finds the first request that neighbouring ranges place differently. If ctx
// ends, it returns its error, and the settings tried so far, or nil.
func AcrossReleases(ctx context.Context, w *SurveyedTrace, rec Recorded, all []Releases, o Options) (*Result, error) {
	var grid []setting.Setup
	for _, of := range all {
		for _, r := range of.Ranges {
			if r.Setup.Name != "" {
				grid = append(grid, r.Setup)
			}
		}
	}
	r, err := Search(ctx, w, rec, grid, o)
	if err != nil || len(r.Runs) == 0 {
		return r, err
	}
	prepared, err := replay.Prepare(ctx, w)
	if err != nil {
		return nil, err
	}
	x := &releaseSearch{Result: r, ctx: ctx, trace: prepared, key: keyOn(w.Demand), device: o.Device}
	x.device.Policy = cmp.Or(o.Device.Policy, rec.Policy)
	x.label(all)
	for _, of := range all {
		if err := x.replay(of); err != nil {
			return nil, err
		}
	}
	r.Points = len(grid)
	t := newAnswerWriter(r, w.Demand.Pools)
	t.a.Verdict = ByRelease
	t.sure()
	r.Answer = t.a
	for _, of := range all {
		x.compare(of.Settings)
	}
	return r, nil
}

// releaseSearch compares the releases after the search of their minima.
type releaseSearch struct {
	*Result
	ctx    context.Context
	trace  *replay.Prepared
	key    func(setting.Setup) string
	device sim.Config
}

// point returns the point that stands for a setup.
func (x *releaseSearch) point(s setting.Setup) *Point {
	key := x.key(s)
	i := slices.IndexFunc(x.Runs, func(p Point) bool { return x.key(p.setup) == key })
	return &x.Runs[i] // every setup is a point, or equivalent to one
}

// label names each point by the releases and settings that it stands for, and sorts the points by
// release.
func (x *releaseSearch) label(all []Releases) {
	names := make(map[*Point][]string, len(x.Runs))
	order := make([]*Point, 0, len(x.Runs))
	for _, of := range all {
		for i := 0; i < len(of.Ranges); {
			first := of.Ranges[i]
			if first.Setup.Name == "" {
				i++
				continue
			}
			p, last := x.point(first.Setup), first
			for i++; i < len(of.Ranges) && of.Ranges[i].Setup.Name != "" && x.point(of.Ranges[i].Setup) == p; i++ {
				last = of.Ranges[i]
			}
			if names[p] == nil {
				order = append(order, p)
			}
			names[p] = append(names[p], releaseRange(first.From, last.To)+" "+of.Settings)
		}
	}
	runs := make([]Point, len(order))
	for i, p := range order {
		runs[i] = *p
		runs[i].Label, runs[i].Same, runs[i].alike = strings.Join(names[p], "; "), nil, nil
	}
	x.Runs = runs
	if x.Pools != nil {
		x.Pools.Label = x.point(x.Pools.setup).Label
	}
}

// releaseRange formats a range of releases.
func releaseRange(from, to string) string {
	if from == to {
		return from
	}
	return from + " to " + to
}

// replay adds the results of one configuration under all rules.
func (x *releaseSearch) replay(of Releases) error {
	at := x.Card
	if at < x.LowerBound {
		at = compare.Ample(x.LowerBound)
	}
	var before *ReleaseRange
	var places []device.Addr // of the range before
	for i := range of.Ranges {
		r := &of.Ranges[i]
		result := ReleaseResult{Settings: of.Settings, From: r.From, To: r.To, Refused: r.Refused, Changes: r.Changes}
		if r.Setup.Name != "" {
			result.Refused = x.point(r.Setup).Rejects
		}
		if r.Setup.Name != "" && result.Refused == "" {
			p := x.point(r.Setup)
			result.Label, result.Need, result.Exact = p.Label, p.Need(), p.MinCapacity != nil
			var err error
			if places, result.Peak, result.Differs, err = x.place(r.Setup, at, places); err != nil {
				return err
			}
			if before != nil && result.Differs == nil {
				if result.Differs, err = x.placeWithin(before.Setup, r.Setup); err != nil {
					return err
				}
			}
			before = r
		}
		x.Releases = append(x.Releases, result)
	}
	return nil
}

// placeWithin returns the first request that two setups place differently on the smallest device on
// which only one of them is known to complete, nil if there is no such device.
func (x *releaseSearch) placeWithin(a, b setting.Setup) (*Difference, error) {
	before, after := x.point(a).Need(), x.point(b).Need()
	n := min(before, after)
	if n == 0 || before == after {
		return nil, nil
	}
	places, _, _, err := x.place(a, n, nil)
	if err != nil {
		return nil, err
	}
	_, _, d, err := x.place(b, n, places)
	return d, err
}

// place replays the trace on a device of n bytes. It returns the addresses of all requests in
// order, the peak of reserved bytes, and the first request whose address differs from the one in
// before. Without before it compares nothing.
func (x *releaseSearch) place(s setting.Setup, n device.Size, before []device.Addr) (places []device.Addr,
	peak device.Size, first *Difference, err error) {
	x.device.Capacity = n
	dev, err := sim.New(x.device)
	if err != nil {
		return nil, 0, nil, err
	}
	o := replay.Options{FreeAt: x.FreeAt, Watch: func(int) error { return x.ctx.Err() }}
	o.Observe = func(seen replay.Observation) error {
		if seen.Of == nil || !seen.Called || seen.Of.Kind != trace.Alloc && seen.Of.Kind != trace.LiveAtStart {
			return nil
		}
		at, k := seen.Block.Addr, len(places)
		if seen.Err != nil {
			at = refused
		}
		places = append(places, at)
		if before == nil || first != nil || before[k] == at {
			return nil
		}
		first = &Difference{Event: seen.Event, Size: seen.Request.Size, Stream: seen.Request.Stream, On: n}
		switch refused {
		case at:
			first.Refused = "after"
		case before[k]:
			first.Refused = "before"
		}
		return nil
	}
	res, err := x.trace.Run(s.ForCapacity(n), dev, o)
	if err != nil {
		return nil, 0, nil, err
	}
	return places, res.Peak.Reserved, first, nil
}

// releaseGroup is the ranges of releases with one figure.
type releaseGroup struct {
	figure device.Size
	ranges []ReleaseResult // adjacent ones are joined
}

// groupReleases returns the ranges with each figure of some settings, in the order of their
// releases. A range that refuses the settings separates its neighbours.
func groupReleases(all []ReleaseResult, figure func(*ReleaseResult) device.Size) (groups []releaseGroup) {
	for i := range all {
		r := &all[i]
		k := slices.IndexFunc(groups, func(g releaseGroup) bool { return g.figure == figure(r) })
		switch {
		case r.Refused != "":
		case k < 0:
			groups = append(groups, releaseGroup{figure(r), []ReleaseResult{*r}})
		case all[i-1].Refused == "" && figure(&all[i-1]) == figure(r):
			groups[k].ranges[len(groups[k].ranges)-1].To = r.To
		default:
			groups[k].ranges = append(groups[k].ranges, *r)
		}
	}
	return groups
}

// String returns the releases of the group.
func (g releaseGroup) String() string {
	var names []string
	for _, r := range g.ranges {
		names = append(names, releaseRange(r.From, r.To))
	}
	return strings.Join(names, " and ")
}

// subject returns the releases of the group and a verb, for the beginning of a sentence.
func (g releaseGroup) subject(verb string) string {
	if len(g.ranges) == 1 && g.ranges[0].From == g.ranges[0].To {
		return "Release " + g.String() + " " + verb + "s"
	}
	return "Releases " + g.String() + " " + verb
}

// compare adds the sentences about one configuration to the answer.
func (x *releaseSearch) compare(settings string) {
	var all, placed []ReleaseResult
	say := func(format string, args ...any) { x.Answer.Text = append(x.Answer.Text, fmt.Sprintf(format, args...)) }
	exact := true
	var refusals []string
	for _, r := range x.Releases {
		if r.Settings != settings {
			continue
		}
		all = append(all, r)
		if r.Refused != "" {
			g := releaseGroup{ranges: []ReleaseResult{r}}
			refusals = append(refusals, g.subject("refuse")+" these settings: "+r.Refused+".")
			continue
		}
		placed, exact = append(placed, r), exact && r.Exact
	}
	peaks := groupReleases(all, func(r *ReleaseResult) device.Size { return r.Peak })
	if exact {
		needs := groupReleases(all, func(r *ReleaseResult) device.Size { return r.Need })
		if x.spread(say, needs, "need", settings); len(needs) == 1 && len(peaks) > 1 {
			least, most := ends(peaks)
			say("With room to spare, %s up to %s more than %s.", lower(most.subject("reserve")),
				units.Bytes(most.figure-least.figure), least)
		}
	} else {
		x.spread(say, peaks, "reserve", settings)
		say("Not every minimum capacity was searched to its end; --grid full does that.")
	}
	x.Answer.Text = append(x.Answer.Text, refusals...)
	for i := 1; i < len(placed); i++ {
		x.Answer.Changes = append(x.Answer.Changes, changeText(&placed[i-1], &placed[i]))
	}
}

// ends returns the groups with the least and the most bytes.
func ends(groups []releaseGroup) (least, most releaseGroup) {
	by := func(a, b releaseGroup) int { return cmp.Compare(a.figure, b.figure) }
	return slices.MinFunc(groups, by), slices.MaxFunc(groups, by)
}

// spread compares the releases that need least and most, and lists those between.
func (x *releaseSearch) spread(say func(string, ...any), groups []releaseGroup, verb, settings string) {
	if len(groups) == 1 {
		say("No release makes a difference %s: %s %s.", settings, lower(groups[0].subject(verb)),
			units.Bytes(groups[0].figure))
		return
	}
	least, most := ends(groups)
	x.Answer.Label = cmp.Or(x.Answer.Label, least.ranges[0].Label)
	say("%s %s more than %s %s: %s, not %s.", most.subject(verb), units.Bytes(most.figure-least.figure), least, settings,
		units.Bytes(most.figure), units.Bytes(least.figure))
	for _, g := range groups {
		if g.figure != least.figure && g.figure != most.figure {
			say("%s %s.", g.subject(verb), units.Bytes(g.figure))
		}
	}
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// changeText describes the first request that two neighbouring ranges place differently.
func changeText(before, after *ReleaseResult) string {
	needs := ""
	switch {
	case !before.Exact || !after.Exact:
	case after.Need > before.Need:
		needs = ", " + units.Bytes(after.Need-before.Need) + " more"
	case after.Need < before.Need:
		needs = ", " + units.Bytes(before.Need-after.Need) + " less"
	}
	from := fmt.Sprintf("From %s to %s, %s%s: ", before.To, after.From, after.Settings, needs)
	d := after.Differs
	if d == nil {
		return from + "every request is placed alike."
	}
	what := fmt.Sprintf("event %s, a request of %s on stream %d, is the first that is placed elsewhere",
		units.Count(uint64(d.Event)), units.Bytes(d.Size), d.Stream)
	switch d.Refused {
	case "before":
		what += ", and " + before.To + " refuses it"
	case "after":
		what += ", and " + after.From + " refuses it"
	}
	return from + what + " on a device of " + units.Bytes(d.On) + ". " + strings.Join(after.Changes, " Or: ")
}
