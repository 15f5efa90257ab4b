package compare

import (
	"sync"
	"time"

	"github.com/vramyard/vramyard/harness/trace"
)

// TypicalReplays is the assumed number of replays in a run before the first result: on w1 with
// 100,000 pairs and 1,000 live blocks buddy took 28, bfc 32, caching 40 and tlsf 48.
const TypicalReplays = 36

// estimate estimates the finished fraction of a comparison. The time of a run is the number of
// events of its trace, times the replays of its setup, times the time of an event in it. A setup
// without runs so far is assumed to have the mean of the others.
type estimate struct {
	lock   sync.Mutex
	setups int
	runs   []progress // in the order of the report
}

// progress is the progress of a run.
type progress struct {
	setup    int           // index in the trace's runs
	events   int           // of its trace
	replayed int           // events so far
	took     time.Duration // of its replays so far, as if they had run sequentially
	finished bool
}

func newEstimate[S trace.Source](traces []S, jobs []job) *estimate {
	e := &estimate{runs: make([]progress, len(jobs))}
	for _, j := range jobs {
		e.setups = max(e.setups, j.column+1)
		e.runs[j.run] = progress{setup: j.column, events: traces[j.trace].Head().Events}
	}
	return e
}

// estimated returns the options for a run that reports its replays to e.
func (o Options) estimated(e *estimate, run int) Options {
	if o.Share != nil {
		o.worked = func(events int, took time.Duration) { o.Share(e.add(run, events, took, false)) }
	}
	return o
}

// add takes events that were replayed for a run within some time, and returns the share of all time
// that is over, 0 to 1.
func (e *estimate) add(run, events int, took time.Duration, finished bool) float64 {
	e.lock.Lock()
	defer e.lock.Unlock()
	r := &e.runs[run]
	r.replayed += events
	r.took += took
	r.finished = r.finished || finished
	replays, perEvent := e.replays(), e.perEvent()
	var over, all float64
	for _, r := range e.runs {
		over += float64(r.took)
		if r.finished {
			all += float64(r.took)
		} else {
			all += max(float64(r.events)*replays[r.setup]*perEvent[r.setup], float64(r.took)/0.95)
		}
	}
	if all == 0 {
		return 0
	}
	return over / all
}

func (e *estimate) replays() []float64 {
	sums, counts := make([]float64, e.setups), make([]float64, e.setups)
	sum, n := float64(TypicalReplays), 1.0
	for _, r := range e.runs {
		if r.finished && r.events > 0 {
			times := float64(r.replayed) / float64(r.events)
			sums[r.setup] += times
			counts[r.setup]++
			sum += times
			n++
		}
	}
	for j := range sums {
		if counts[j] == 0 {
			sums[j], counts[j] = sum, n
		}
		sums[j] /= counts[j]
	}
	return sums
}

// perEvent returns how long an event takes in each setup, in nanoseconds.
func (e *estimate) perEvent() []float64 {
	took, events := make([]float64, e.setups), make([]float64, e.setups)
	for _, r := range e.runs {
		took[r.setup] += float64(r.took)
		events[r.setup] += float64(r.replayed)
	}
	sum, n := 0.0, 0.0
	for j := range took {
		if events[j] > 0 {
			took[j] /= events[j]
			sum += took[j]
			n++
		}
	}
	for j := range took {
		if events[j] == 0 && n > 0 {
			took[j] = sum / n
		}
	}
	return took
}
