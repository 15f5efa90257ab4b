package whatif

import (
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// Pools compares the minima of one setting with other private pools; see [trace.Repool]. A minimum
// is null if none was found.
type Pools struct {
	Label    string       `json:"label"`                  // of the setting
	Recorded *device.Size `json:"recorded_minimum_bytes"` // with the recorded pools
	// with one pool for all captures; null also if there is one pool, or several are open at once
	Shared *device.Size `json:"shared_minimum_bytes"`
	Merged *device.Size `json:"merged_minimum_bytes"` // with the ordinary pool only

	setup setting.Setup // of the setting
}

// cachingName is the strategy with the private pools of PyTorch.
const cachingName = "caching"

// repooledEvents is the most events of a trace whose pools are changed: some thirty replays then
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
	for _, way := range append([]string{""}, trace.PoolWays()...) {
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
