package whatif

import (
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
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
	// with the option use_on_oom for every recorded pool
	OnOOM   *device.Size `json:"use_on_oom_minimum_bytes"`
	NoSplit *device.Size `json:"no_split_minimum_bytes"` // with no_split

	setup setting.Setup // of the setting
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
	p := &Pools{Label: s.Runs[i].Label, setup: s.Runs[i].setup}
	for _, way := range []string{"", trace.PoolsShared, trace.PoolsMerged} {
		changed := s.trace
		if way != "" {
			t, err := trace.Repool(w, way)
			if err != nil {
				continue // these pools cannot be shared
			}
			if changed, err = replay.Prepare(s.ctx, t); err != nil {
				return nil, err
			}
		}
		trial := compare.NewTrial(s.pool, changed, s.Runs[i].setup, compare.Options{
			Device: replay.SimTarget(s.o.Device), FreeAt: s.o.FreeAt, Quick: true, Once: true,
		})
		row, err := trial.Run(s.ctx)
		if err != nil {
			return nil, err
		}
		switch way {
		case "":
			p.Recorded = row.MinCapacity
		case trace.PoolsShared:
			p.Shared = row.MinCapacity
		case trace.PoolUseOnOOM:
			p.OnOOM = row.MinCapacity
		case trace.PoolNoSplit:
			p.NoSplit = row.MinCapacity
		default:
			p.Merged = row.MinCapacity
		}
	}
	return p, nil
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

// options names the options of MemPools with which the recorded pools need less.
func (t *answerWriter) options() {
	if t.Pools == nil {
		return
	}
	for _, o := range []struct {
		python, since, caveat string
		need                  *device.Size
	}{
		{PythonOnOOM, "2.8", " A CUDA graph may not use such a pool: a replay would overwrite what others keep there.",
			t.Pools.OnOOM},
		{PythonNoSplit, "2.10", "", t.Pools.NoSplit},
	} {
		if t.Pools.Saves(o.need) {
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
