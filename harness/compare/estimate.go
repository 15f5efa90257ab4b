package compare

import (
	"sync"

	"github.com/vramyard/vramyard/harness/trace"
)

// typicalReplays is how often a run replays its trace, in whole traces, as long as no run tells: on w1 with 100,000 pairs
// and 1,000 live blocks buddy took 28, bfc 32, caching 40 and tlsf 48.
const typicalReplays = 36

// estimate tells how much of a comparison is done before the first run is. How many replays a run takes is known
// when it is finished, so that those that are tell how many the others will take.
type estimate struct {
	lock     sync.Mutex
	events   []int // of the trace of each run
	replayed []int // so far, by run
	finished []bool
}

// newEstimate returns what tells of so many setups on traces.
func newEstimate[S trace.Source](traces []S, setups int) *estimate {
	n := len(traces) * setups
	e := &estimate{events: make([]int, n), replayed: make([]int, n), finished: make([]bool, n)}
	for k := range n {
		e.events[k] = traces[k/setups].Head().Events
	}
	return e
}

// estimated returns the options for a run, which tell e what it replays.
func (o Options) estimated(e *estimate, run int) Options {
	if told := o.Replayed; o.Share != nil {
		o.Replayed = func(events int) {
			if told != nil {
				told(events)
			}
			o.Share(e.add(run, events, false))
		}
	}
	return o
}

// add takes events that were replayed for a run, and returns the share that is done, 0 to 1.
func (e *estimate) add(run, events int, finished bool) float64 {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.replayed[run] += events
	e.finished[run] = e.finished[run] || finished
	sum, n := float64(typicalReplays), 1.0
	for k, done := range e.finished {
		if done && e.events[k] > 0 {
			sum += float64(e.replayed[k]) / float64(e.events[k])
			n++
		}
	}
	var done, all float64
	for k, ended := range e.finished {
		whole := sum / n * float64(e.events[k])
		all += whole
		if ended {
			done += whole
		} else {
			done += min(float64(e.replayed[k]), 0.95*whole)
		}
	}
	if all == 0 {
		return 0
	}
	return done / all
}
