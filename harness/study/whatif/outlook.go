package whatif

import "sync"

// outlook estimates the remaining work for [Options.Progress].
type outlook struct {
	lock     sync.Mutex
	phase    phase
	known    int    // measured points
	probes   uint64 // capacities tried
	pending  int    // of them, those whose results the searches for minima have not taken yet
	probing  uint64 // value of done at the first probe
	left     int    // remaining steps of a phase after phaseSearch
	explains bool   // a failed request will be explained
}

type phase uint8

const (
	phaseSearch  phase = iota // measure points and search their minima
	phaseAgain                // measure points again
	phaseExplain              // test the failed request with each setting
)

func (s *search) measured(i int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.minima[i] = s.begin(i)
	s.known++
}

// probed counts a tried capacity. The search takes its result at the end of the round.
func (s *search) probed() {
	s.lock.Lock()
	s.probes++
	s.pending++
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

func (s *search) showProgress() {
	if s.o.Progress == nil {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	done, n := s.done.Load(), uint64(s.trace.Head().Events)
	switch s.phase {
	case phaseExplain: // already paid for
		todo := explainedAs * n * uint64(s.left)
		s.o.Progress(done-min(todo, done), done)
	case phaseAgain:
		s.o.Progress(done, s.bounded(done, n*uint64(s.left)+s.explaining()))
	case phaseSearch:
		s.o.Progress(done, s.bounded(done, s.searching(done)+s.explaining()))
	}
}

// bounded returns done + todo, limited by the budget.
func (s *search) bounded(done, todo uint64) uint64 {
	if s.Budget == 0 {
		return done + todo
	}
	return max(done, min(done+todo, s.Budget))
}

// searching estimates the events until all minima are found: the remaining probes of measured
// points, and the average of those for the other points.
func (s *search) searching(done uint64) uint64 {
	n := uint64(s.trace.Head().Events)
	if s.known == 0 {
		return n * uint64(len(s.Runs))
	}
	probe := n
	if s.probes > 0 { // a failed replay ends early
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
	todo -= min(todo, probe*uint64(s.pending))
	return todo + (done+todo)/uint64(s.known)*uint64(len(s.Runs)-s.known)
}

// explaining returns the events charged for explaining the failed request.
func (s *search) explaining() uint64 {
	if !s.explains {
		return 0
	}
	return explainedAs * uint64(s.trace.Head().Events) * uint64(len(s.Runs))
}
