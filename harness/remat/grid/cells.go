package grid

import (
	"context"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
)

// engine is the version of package remat, raised when it changes figures although no strategy does.
// TestEngine fails if it is not.
const engine = 1

// kindRemat is the kind of the cells of runs.
const kindRemat = "remat"

// searchKey is the [cell.Key].Search of a run.
type searchKey struct {
	Kind      string      `json:"kind"`
	Heuristic string      `json:"heuristic"`
	Ladder    string      `json:"ladder"`
	Budget    device.Size `json:"budget_bytes"`
	Limit     int64       `json:"limit_ns"`
	Settings  Settings    `json:"settings"`
	Batch     int         `json:"batch,omitempty"`    // predicted batch size; 0: the log as recorded
	Recorded  []Recorded  `json:"recorded,omitempty"` // logs that the prediction is from
}

func searchOf(o *Options, heuristic, ladder string, budget device.Size) searchKey {
	return searchKey{Kind: kindRemat, Heuristic: heuristic, Ladder: ladder, Budget: budget, Settings: o.Settings}
}

// recall sets the figures of the run from its cell, or by compute, whose result is then stored. A
// nil setup is the counting memory.
func (r *Run) recall(ctx context.Context, c *cell.Cells, log string, setup *setting.Setup, s searchKey,
	compute func() error) error {
	k, ok := cell.Key{Engine: engine, Subject: log, Search: s, Strategy: Counting, Semantics: "1"}, true
	if setup != nil {
		k, ok = k.Of(*setup)
	}
	if c == nil || !ok || log == "" {
		return compute()
	}
	model, strategy, baseline, ratio := r.Model, r.Strategy, r.Baseline, r.Ratio
	stored, err := cell.Recall(ctx, c, k, func() (cell.Result[Run, struct{}], error) {
		err := compute()
		anonymous := *r
		anonymous.Model, anonymous.Strategy, anonymous.Ratio = "", "", Whole
		return cell.Result[Run, struct{}]{Exact: anonymous}, err
	})
	*r = stored.Exact
	r.Model, r.Strategy, r.Baseline, r.Ratio = model, strategy, baseline, ratio
	return err
}
