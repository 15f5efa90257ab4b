package whatif

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/internal/units"
)

// Pools compares the minima of one setting with other private pools; see [trace.Repool]. A minimum
// is null if none was found.
type Pools struct {
	Label    string       `json:"label"`                  // of the setting
	Recorded *device.Size `json:"recorded_minimum_bytes"` // with the recorded pools
	// with one pool for all captures; null also if there is one pool, or several are open at once
	Shared *device.Size `json:"shared_minimum_bytes"`
	Merged *device.Size `json:"merged_minimum_bytes"` // with the ordinary pool only
	// a sufficient capacity with one pool and the captures in descending order of their needs, with
	// --grid full the minimum; null also if they cannot be moved, are in this order, or are fewer than
	// two
	LargestFirst *device.Size `json:"largest_first_sufficient_bytes"`
	Fixed        string       `json:"captures_fixed,omitempty"` // why the captures cannot be moved
	// the same with one pool that begins with a free block for the largest capture; null also if
	// several pools are open at once
	Primed   *device.Size `json:"primed_sufficient_bytes"`
	Priming  device.Size  `json:"priming_bytes,omitempty"` // size of that block
	Captures int          `json:"capture_count"`           // redirections of one stream
	// with the option use_on_oom for every recorded pool
	OnOOM   *device.Size `json:"use_on_oom_minimum_bytes"`
	NoSplit *device.Size `json:"no_split_minimum_bytes"` // with no_split

	setup   setting.Setup // of the setting
	base    Point         // of the setting
	pools   int           // private pools
	mixed   bool          // there are captures and MemPools
	changed []poolsPoint
}

// poolsPoint is the outcome of the setting with other pools.
type poolsPoint struct {
	way string // see [trace.Repool]
	Point
}

// cachingName is the strategy with the private pools of PyTorch.
const cachingName = "caching"

// repooledEvents is the most events of a trace whose pools are changed: some fifty replays then
// take a few seconds.
const repooledEvents = 500_000

// repool searches the minimum with other private pools, with the recorded setting, or else with the
// PyTorch setting of the fewest changes. It does not count in the budget.
func (s *search) repool(w *SurveyedTrace) (*Pools, error) {
	i := s.pooledPoint()
	if !w.Demand.Pools || i < 0 || w.Head().Events > repooledEvents {
		return nil, nil
	}
	p := &Pools{
		Label: s.Runs[i].Label, Captures: w.Captures, setup: s.Runs[i].setup, base: s.Runs[i],
		pools: w.Pools, mixed: w.Captures > 0 && w.MemPools,
	}
	begun := s.Recorded.Opening > 0 && w.PoolFirst
	for _, way := range append([]string{""}, trace.PoolWays()...) {
		changed := s.trace
		switch {
		case way == trace.PoolsShared && w.Pools == 1:
			continue // these are the recorded pools
		case begun && prepares(way):
			p.Fixed = "private pools were in use when the recording began"
			continue
		}
		if way != "" {
			t, err := trace.Repool(w, way)
			if err != nil { // these pools cannot be shared, or their captures cannot be moved
				if _, reason, fixed := strings.Cut(err.Error(), trace.ErrFixedCaptures.Error()+": "); fixed {
					p.Fixed = reason
				}
				continue
			}
			if way == trace.PoolsPrimed {
				begin := slices.IndexFunc(t.Events, func(e trace.Event) bool { return e.Kind == trace.PoolBegin })
				p.Priming = t.Events[begin+1].Size
			}
			if changed, err = replay.Prepare(s.ctx, t); err != nil {
				return nil, err
			}
		}
		if err := s.replayPools(p, way, changed); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// replayPools adds the outcome of one way to change pools, "" for the recorded ones.
func (s *search) replayPools(p *Pools, way string, changed *replay.Prepared) error {
	o := s.replays()
	o.Quick = true
	t := compare.NewTrial(s.pool, changed, p.setup, o)
	q := poolsPoint{way, p.base}
	q.Recorded, q.FailsAt, q.Carried = false, nil, nil
	var err error
	if prepares(way) && !s.o.Full {
		err = s.measurePools(t, changed, &q.Point)
	} else {
		err = s.searchPools(t, &q)
	}
	if err != nil {
		return err
	}
	switch way {
	case "":
		p.Recorded = q.MinCapacity
		return nil
	case trace.PoolsShared:
		p.Shared = q.MinCapacity
	case trace.PoolsMerged:
		p.Merged = q.MinCapacity
	case trace.PoolsLargestFirst:
		p.LargestFirst = q.CompletesAt
	case trace.PoolsPrimed:
		p.Primed = q.CompletesAt
	case trace.PoolUseOnOOM:
		p.OnOOM = q.MinCapacity
		return nil
	default:
		p.NoSplit = q.MinCapacity
		return nil
	}
	p.changed = append(p.changed, q)
	return nil
}

// prepares reports whether a way to change pools prepares them by the first requests.
func prepares(way string) bool { return way == trace.PoolsLargestFirst || way == trace.PoolsPrimed }

// searchPools finds the minimum, and replays pools that may be recommended on the card.
func (s *search) searchPools(t *compare.Trial, q *poolsPoint) (err error) {
	if q.Run, err = t.Run(s.ctx); err != nil {
		return err
	}
	q.CompletesAt = q.MinCapacity
	if s.onCard() && (q.way == trace.PoolsShared || prepares(q.way)) {
		completes, err := t.Completes(s.ctx, s.Card)
		q.Carried = &completes
		return err
	}
	return nil
}

// measurePools finds a sufficient capacity in one or two replays: the peak on an ample device, or
// the card if that is smaller.
func (s *search) measurePools(t *compare.Trial, changed *replay.Prepared, q *Point) (err error) {
	ample := compare.Ample(changed.LowerBound())
	if q.Run, err = t.Measure(s.ctx, ample); err != nil || !q.Completed() {
		return err
	}
	q.CompletesAt = &ample
	if q.setup.Unbound() && !changed.Changes() {
		peak := device.AlignUp(t.PeakCharged(), compare.Grid)
		q.CompletesAt = &peak
	}
	if !s.onCard() {
		return nil
	}
	completes := *q.CompletesAt <= s.Card
	if !completes {
		row, err := t.Measure(s.ctx, s.Card)
		if err != nil {
			return err
		}
		if completes = row.Completed(); completes {
			card := s.Card
			q.Run, q.CompletesAt = row, &card
		}
	}
	q.Carried = &completes
	return nil
}

// pooledPoint returns the index of the setting whose pools are changed, -1 without one.
func (s *search) pooledPoint() int {
	best := -1
	for i := range s.Runs {
		p := &s.Runs[i]
		name, _, _ := strings.Cut(p.Strategy, ":")
		switch {
		case name != cachingName || p.Rejects != "":
		case p.Recorded:
			return i
		case best < 0 || p.Changes < s.Runs[best].Changes:
			best = i
		}
	}
	return best
}

// Saves reports whether the recorded pools need less with an option, whose minimum is with.
func (p *Pools) Saves(with *device.Size) bool {
	return with != nil && (p.Recorded == nil || *with < *p.Recorded)
}

// options names the options of MemPools with which the recorded pools need less, unless the release
// lacks the option or the answer needs no more.
func (t *answerWriter) options() {
	if t.Pools == nil {
		return
	}
	version, need := t.Recorded.Version, t.a.Need
	for _, o := range []struct {
		python, since, caveat string
		need                  *device.Size
	}{
		{PythonOnOOM, "2.8", " A CUDA graph may not use such a pool: a replay would overwrite what others keep there.",
			t.Pools.OnOOM},
		{PythonNoSplit, "2.10", "", t.Pools.NoSplit},
	} {
		if t.Pools.Saves(o.need) && (need == 0 || *o.need < need) && (version == "" || !torchenv.Older(version, o.since)) {
			t.say("If the private pools are made with %s, in PyTorch from %s on, %s suffice under %s.%s", o.python, o.since,
				units.Bytes(*o.need), t.Pools.Label, o.caveat)
		}
	}
}

// The lines of Python that make a MemPool with an option.
const (
	PythonOnOOM   = "torch.cuda.MemPool(use_on_oom=True)"
	PythonNoSplit = "torch.cuda.MemPool(no_split=True)"
)
