package compare

import (
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Training is the trace of an earlier run that strategies planned by.
type Training struct {
	Trace       string   `json:"trace"`        // name of the trace
	TraceSHA256 string   `json:"trace_sha256"` // hash of its decompressed file
	Events      int      `json:"events"`       // of the trace
	Strategies  []string `json:"strategies"`   // that planned, in the order of the setups

	content string // hash of its events
}

// errUnfit reports a training trace that no strategy can use.
var errUnfit = errors.New("no allocation to learn from")

// ErrNoPlanner reports that none of the strategies is a [power.Planner].
var ErrNoPlanner = errors.New("no strategy plans ahead")

// Learn returns setups of which every strategy that is a [power.Planner] gets the calls of t as its
// forecast. The error is [ErrNoPlanner] if no strategy is one; it also fails if t has no
// allocation. Each strategy is built once, on a simulated device.
func Learn(t *trace.Trace, setups []setting.Setup) ([]setting.Setup, *Training, error) {
	if !slices.ContainsFunc(t.Events, func(e trace.Event) bool { return e.Kind == trace.Alloc }) {
		return nil, nil, errUnfit
	}
	forecast, err := replay.ForecastOf(t)
	if err != nil {
		return nil, nil, err
	}
	training := &Training{Trace: t.Header.Name, TraceSHA256: t.Header.Hash, Events: len(t.Events)}
	training.content, _ = trace.ContentHash(t) // a trace in memory is read without errors
	setups = slices.Clone(setups)
	for i := range setups {
		if s := &setups[i]; Plans(*s) {
			s.Forecast = forecast
			training.Strategies = append(training.Strategies, s.Name)
		}
	}
	if len(training.Strategies) == 0 {
		return nil, nil, ErrNoPlanner
	}
	return setups, training, nil
}

// Plans reports whether a strategy is a [power.Planner]. It is false if the strategy cannot be
// built.
func Plans(s setting.Setup) bool {
	dev, err := sim.New(sim.Config{})
	if err != nil {
		return false
	}
	a, err := s.New(dev)
	if err != nil {
		return false
	}
	defer a.Close() // its error does not matter: the device is discarded too
	return power.Has(a, power.PowerPlanner)
}
