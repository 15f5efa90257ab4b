package grid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
)

// engine is the version of package remat, raised when it changes figures although no strategy does.
// TestEngine fails if it is not.
const engine = 1

// CountingSemantics is the version of the counting memory; see [setting.Setup].
const CountingSemantics = "1"

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

// Kept is a run as a store has it: without the names of the log and the strategy, and without its
// ratio.
type Kept struct {
	KeptRun
	KeptTime
}

// KeptRun is the exact part of a [Kept].
type KeptRun struct {
	Run
	// Failed is the error of every repetition, and the figures are then 0; empty: no error.
	Failed string `json:"failed,omitempty"`
}

// KeptTime is the measured part of a [Kept].
type KeptTime struct {
	Seconds float64 `json:"cell_seconds"` // time of the run; 0: not measured
}

// ReadKept reads the cell of [Point.Execute] from a store. The error is [cell.ErrMissing] if the
// store does not have it.
func ReadKept(ctx context.Context, s cell.Store, hash string) (Kept, error) {
	r, err := cell.Read[KeptRun, KeptTime](ctx, s, hash)
	return Kept{r.Exact, r.Measured}, err
}

// key returns the key of a run of a log, and false if its result must not be stored. A nil setup is
// the counting memory.
func (s searchKey) key(log string, setup *setting.Setup) (k cell.Key, ok bool) {
	s.Kind = kindRemat
	k, ok = cell.Key{Engine: engine, Subject: log, Search: s, Strategy: Counting, Semantics: CountingSemantics}, true
	if setup != nil {
		k, ok = k.Of(*setup)
	}
	return k, ok && log != ""
}

// recall sets the figures of the run from its cell, or by compute, whose result is then stored.
func (r *Run) recall(ctx context.Context, c *cell.Cells, log string, setup *setting.Setup, s searchKey,
	compute func() error) error {
	k, ok := s.key(log, setup)
	if !ok {
		c = nil
	}
	model, strategy, baseline, ratio := r.Model, r.Strategy, r.Baseline, r.Ratio
	stored, err := cell.Recall(ctx, c, k, func() (kept cell.Result[KeptRun, KeptTime], err error) {
		began := time.Now()
		err = compute()
		kept.Exact.Run, kept.Measured.Seconds = *r, time.Since(began).Seconds()
		kept.Exact.Model, kept.Exact.Strategy, kept.Exact.Ratio = "", "", Whole
		if failure, failed := errors.AsType[cell.Failure](err); failed && (setup == nil || !cell.Foreign(*setup)) {
			kept.Exact, err = KeptRun{Failed: string(failure)}, nil
		}
		return kept, err
	})
	if err == nil && stored.Exact.Failed != "" {
		err = cell.Failure(stored.Exact.Failed)
	}
	if err != nil {
		return err
	}
	*r = stored.Exact.Run
	r.Model, r.Strategy, r.Baseline, r.Ratio = model, strategy, baseline, ratio
	return nil
}

// Key returns the hash of the cell of [Point.Execute], empty if it must not be stored.
func (p *Point) Key() (string, error) {
	k, ok := p.search().key(p.log.Schedule.SHA256, p.setup)
	if !ok {
		return "", nil
	}
	return k.Hash()
}

// judged is compute, whose lasting errors and panics are then failures.
func (p *Point) judged(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = cell.Failure(fmt.Sprintf("panic: %v", v))
		}
	}()
	if err = p.compute(ctx); !cell.Lasting(ctx, err) {
		return err
	}
	why := err.Error()
	if p.setup != nil {
		why = strings.TrimPrefix(why, p.setup.Name+" ")
	}
	return cell.Failure(why)
}
