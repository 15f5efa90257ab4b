package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/replay"
)

// Engine is the version of the search, the replay and the simulated device. It is raised when they
// change exact figures although no strategy does; TestEngine fails if it is not.
const Engine = 1

// The kinds of cells.
const (
	kindMinimum = "minimum"       // all figures of a run
	kindQuick   = "quick"         // the same with fewer capacities, and without fragmentation
	kindSingle  = "replay"        // the figures of a run without a search
	kindFigures = "figures"       // the figures of one replay of a search
	kindFast    = "figures-quick" // the same without fragmentation
	kindProbe   = "probe"         // whether the trace completes
)

// searchKey is the [cell.Key].Search of a comparison.
type searchKey struct {
	Kind     string        `json:"kind"`
	Capacity device.Size   `json:"capacity_bytes"`          // of the replay, or of the measuring one; 0: ample
	Card     device.Size   `json:"recorded_capacity_bytes"` // of the recorded run; 0: not known
	FreeAt   replay.FreeAt `json:"free_at"`
}

// measurement is the figures of a replay, and the parts that a search needs.
type measurement struct {
	exact
	Measured
}

// exact is the exact part of a [measurement].
type exact struct {
	Figures
	effect
	Charged device.Size `json:"charged_bytes"`
}

// probed is the result of a probe.
type probed struct {
	effect
	Completes bool `json:"completes"`
}

// effect is what a search takes from a replay beside its figures.
type effect struct {
	Replayed uint64   `json:"replayed_event_count"` // without repetitions
	Outcome  *outcome `json:"outcome"`              // null: holds for this capacity only
}

// Kept is a run as a store has it: without the names of the trace and the strategy.
type Kept struct {
	KeptFigures
	KeptMeasured
}

// KeptFigures is the exact part of a [Kept].
type KeptFigures struct {
	Figures
	// Failed is the error of every repetition; empty: no error.
	Failed string `json:"failed,omitempty"`
}

// KeptMeasured is the measured part of a [Kept].
type KeptMeasured struct {
	Measured
	Seconds float64 `json:"cell_seconds"` // from the beginning of the first replay to the end of the last
}

// ReadKept reads the cell of [Trial.Run] from a store. The error is [cell.ErrMissing] if the store
// does not have it.
func ReadKept(ctx context.Context, s cell.Store, hash string) (Kept, error) {
	r, err := cell.Read[KeptFigures, KeptMeasured](ctx, s, hash)
	return Kept{r.Exact, r.Measured}, err
}

// key returns the key of a cell of the trial, and false if its result must not be stored.
func (c *Trial) key(s searchKey) (k cell.Key, ok bool, err error) {
	if c.o.Device.GPU != nil || c.o.Cells == nil && c.o.Probes == nil {
		return k, false, nil
	}
	s.FreeAt = cmp.Or(c.o.FreeAt, replay.AtCompleted)
	k, ok = cell.Key{Engine: Engine, Device: c.o.Device.Used(0), Search: s}.Of(c.setup)
	switch {
	case c.setup.Forecast == nil:
	case c.o.Training == nil:
		return k, false, nil
	default:
		k.Learned = c.o.Training.content
	}
	if ok {
		k.Subject, err = c.trace.Hash()
	}
	return k, ok, err
}

// Key returns the hash of the cell of [Trial.Run], empty if it must not be stored. It fails if the
// trace cannot be read.
func (c *Trial) Key() (string, error) {
	keyed := Trial{trace: c.trace, setup: c.setup, card: c.card, o: c.o}
	keyed.o.Cells = cell.Over(nil)
	k, ok, err := keyed.key(c.runKey())
	if !ok || err != nil {
		return "", err
	}
	return k.Hash()
}

func (c *Trial) runKey() searchKey {
	kind := kindMinimum
	switch {
	case c.o.Single:
		kind = kindSingle
	case c.o.Quick:
		kind = kindQuick
	}
	return searchKey{Kind: kind, Capacity: c.o.Capacity, Card: c.card}
}

// stored returns the run from the cell of the trial.
func (c *Trial) stored(ctx context.Context) (Run, error) {
	compute := func() (r cell.Result[KeptFigures, KeptMeasured], err error) {
		began := time.Now()
		row, err := c.judged(ctx)
		r.Measured = KeptMeasured{row.Measured, time.Since(began).Seconds()}
		failure, failed := errors.AsType[cell.Failure](err)
		switch {
		case failed && !cell.Foreign(c.setup):
			r.Exact.Failed, err = string(failure), nil
		case err == nil:
			r.Exact.Figures = row.anonymous()
		}
		return r, err
	}
	k, ok, err := c.key(c.runKey())
	if err != nil {
		return Run{}, err
	}
	cells := c.o.Cells
	if !ok {
		cells = nil
	}
	r, err := cell.Recall(ctx, cells, k, compute)
	if err == nil && r.Exact.Failed != "" {
		err = cell.Failure(r.Exact.Failed)
	}
	if err != nil {
		return Run{}, err
	}
	row := Run{r.Exact.Figures, r.Measured.Measured}
	c.named(&row)
	return row, nil
}

// judged is run with the failures of [Options].Failures.
func (c *Trial) judged(ctx context.Context) (row Run, err error) {
	if !c.o.Failures {
		return c.run(ctx)
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *replayPanic:
			row, err = Run{}, cell.Failure(fmt.Sprintf("panic: %v", p.value))
		default:
			panic(p)
		}
	}()
	row, err = c.run(ctx)
	if cell.Lasting(ctx, err) && c.o.Rotate != 0 { // which capacity fails first depends on the order
		c.o.Rotate = 0
		row, err = c.run(ctx)
	}
	if cell.Lasting(ctx, err) {
		err = c.failure(err)
	}
	return row, err
}

// failure returns an error without the names and places that it may have.
func (c *Trial) failure(err error) cell.Failure {
	if rejected, ok := errors.AsType[*replay.RejectedError](err); ok {
		return cell.Failure(fmt.Sprintf("event %d: %v", rejected.Event, rejected))
	}
	if on, ok := errors.AsType[*capacityError](err); ok {
		err = on.error
	}
	if cause := errors.Unwrap(err); cause != nil &&
		strings.HasPrefix(err.Error(), c.setup.Name+" on "+c.trace.Head().Header.Name+": ") {
		err = cause
	}
	return cell.Failure(err.Error())
}

// capacityError is an error of a replay on a device of some bytes.
type capacityError struct {
	error
	capacity device.Size
}

func (e *capacityError) Error() string { return fmt.Sprintf("device of %v: %v", e.capacity, e.error) }

func (e *capacityError) Unwrap() error { return e.error }

// anonymous returns the figures without the fields that [Trial.named] sets.
func (r *Figures) anonymous() Figures {
	f := *r
	f.Trace, f.TraceSHA256, f.Strategy, f.Baseline, f.LearnedFrom = "", "", "", false, ""
	return f
}

// measurement is measure, by its cell if replays are stored.
func (c *Trial) measurement(ctx context.Context, n device.Size) (measurement, error) {
	kind := kindFigures
	if c.o.Quick {
		kind = kindFast
	}
	r, err := recalled(ctx, c, searchKey{Kind: kind, Capacity: n}, func() (cell.Result[exact, Measured], error) {
		m, err := c.measure(ctx, n)
		return cell.Result[exact, Measured]{Exact: m.exact, Measured: m.Measured}, err
	})
	return measurement{r.Exact, r.Measured}, err
}

// probe reports whether the trace completes on a device of n bytes.
func (c *Trial) probe(ctx context.Context, n device.Size) (bool, error) {
	r, err := recalled(ctx, c, searchKey{Kind: kindProbe, Capacity: n},
		func() (r cell.Result[probed, struct{}], err error) {
			res, known, err := c.replay(ctx, n, replay.Options{StopAtOOM: true, ByRef: true})
			if res != nil {
				r.Exact.Replayed = uint64(res.Replayed)
			}
			r.Exact.Completes, r.Exact.Outcome = completed(res), known
			return r, err
		})
	if err != nil {
		return false, err
	}
	c.learn(r.Exact.effect)
	return r.Exact.Completes, nil
}

// recalled returns the result of a replay, from its cell if replays are stored.
func recalled[E, M any](ctx context.Context, c *Trial, s searchKey,
	compute func() (cell.Result[E, M], error)) (r cell.Result[E, M], err error) {
	k, ok, err := c.key(s)
	switch {
	case err != nil:
		return r, err
	case !ok:
		return compute()
	}
	return cell.Recall(ctx, c.o.Probes, k, compute)
}
