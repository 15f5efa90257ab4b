package planned

import (
	"sort"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Expected is a request of a profile that a core accepts.
type Expected struct {
	Size  device.Size // bytes
	Align device.Size // power of two, at least Quantum
	Birth int         // number of the call that requests it
	Death int         // number of the call that frees it, or the number of calls
}

// Profile is the forecast of a run, with the marks that divide it.
type Profile struct {
	Requests   []Expected // in order
	Iterations []int      // numbers of the calls that begin an iteration
	Calls      int        // number of calls
	marks      []int      // numbers of the calls that are marks
}

// BeginsIteration reports whether a mark begins an iteration: its text ends in a digit, such as
// "iter 3", or is empty.
func BeginsIteration(text string) bool {
	last := len(text) - 1
	return last < 0 || text[last] >= '0' && text[last] <= '9'
}

// Read returns the profile of a forecast. It leaves out requests of up to least bytes, and those
// that a core never grants.
func Read(f power.Forecast, least device.Size) (p Profile) {
	for x := range f {
		switch x.Kind {
		case power.ExpectMark:
			p.marks = append(p.marks, p.Calls)
			if BeginsIteration(x.Mark) {
				p.Iterations = append(p.Iterations, p.Calls)
			}
		case power.ExpectAlloc:
			r := &x.Request
			if r.Size > least && r.Size <= tiles.MaxRequest && r.Align&(r.Align-1) == 0 {
				p.Requests = append(p.Requests, Expected{r.Size, max(r.Align, Quantum), p.Calls, x.Other})
			}
		}
		p.Calls++
	}
	for i := range p.Requests {
		if r := &p.Requests[i]; r.Death < 0 {
			r.Death = p.Calls
		}
	}
	return p
}

// Phase returns the number of marks before a call.
func (p *Profile) Phase(call int) int { return sort.SearchInts(p.marks, call) }

// Between returns the requests whose calls have numbers from a first one up to, but not including,
// a last one.
func (p *Profile) Between(first, last int) []Expected {
	at := func(call int) int {
		return sort.Search(len(p.Requests), func(i int) bool { return p.Requests[i].Birth >= call })
	}
	return p.Requests[at(first):at(last)]
}
