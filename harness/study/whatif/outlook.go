package whatif

import "sync"

// outlook is the part of a search that is still to come, for [Options.Progress].
type outlook struct {
	lock     sync.Mutex
	phase    phase
	known    int    // points that are measured
	probes   uint64 // capacities that were tried
	answered int    // of them, those that the searches for minima have not taken
	probing  uint64 // events replayed when the first of them was tried
	left     int    // pieces of work of the phase that are still to be done, behind phaseSearch
	explains bool   // a request that found no memory is looked at in the end
}

// phase is a part of a search.
type phase uint8

const (
	phaseSearch  phase = iota // points are measured and their minima searched
	phaseAgain                // points are measured again
	phaseExplain              // settings are asked about the request that found no memory
)

func (s *search) measured(i int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.minima[i] = s.begin(i)
	s.known++
}

// probed enters a capacity that was tried, whose answer the search for the minimum takes at the end
// of the round.
func (s *search) probed() {
	s.lock.Lock()
	s.probes++
	s.answered++
	s.lock.Unlock()
}

func (s *search) enter(p phase, n int) {
	s.lock.Lock()
	s.phase, s.left = p, n
	s.lock.Unlock()
}

func (s *search) over() {
	s.lock.Lock()
	s.left--
	s.lock.Unlock()
}

func (s *search) tell() {
	if s.o.Progress == nil {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	done, n := s.done.Load(), uint64(s.trace.Head().Events)
	switch s.phase {
	case phaseExplain: // which was paid for before
		todo := explainedAs * n * uint64(s.left)
		s.o.Progress(done-min(todo, done), done)
	case phaseAgain:
		s.o.Progress(done, s.bounded(done, n*uint64(s.left)+s.explaining()))
	case phaseSearch:
		s.o.Progress(done, s.bounded(done, s.searching(done)+s.explaining()))
	}
}

// bounded returns the events in all if so many are to come, as far as the budget goes.
func (s *search) bounded(done, todo uint64) uint64 {
	if s.Budget == 0 {
		return done + todo
	}
	return max(done, min(done+todo, s.Budget))
}

// searching returns about how many events are to be replayed until every point is searched: what
// the measured ones have still to try, and for each of the others as much as one of those takes.
func (s *search) searching(done uint64) uint64 {
	n := uint64(s.trace.Head().Events)
	if s.known == 0 {
		return n * uint64(len(s.Runs))
	}
	probe := n
	if s.probes > 0 { // a capacity that fails ends its replay
		probe = (done - s.probing) / s.probes
	}
	var todo uint64
	for i, m := range s.minima {
		if m == nil {
			continue
		}
		todo += probe * uint64(m.Left())
		if s.Runs[i].setup.Preallocates || !s.onCard() {
			todo += n // it is measured again
		}
	}
	todo -= min(todo, probe*uint64(s.answered))
	return todo + (done+todo)/uint64(s.known)*uint64(len(s.Runs)-s.known)
}

// explaining returns how many events it is charged for to look at the request that found no memory.
func (s *search) explaining() uint64 {
	if !s.explains {
		return 0
	}
	return explainedAs * uint64(s.trace.Head().Events) * uint64(len(s.Runs))
}
