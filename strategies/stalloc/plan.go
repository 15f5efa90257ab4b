package stalloc

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
	"github.com/vramyard/vramyard/strategies/internal/planned"
)

// mostSteps bounds the steps of one packing, to about a second.
const mostSteps = 1 << 24

// place is the planned place of a request.
type place struct {
	offset  device.Size // in the arena
	size    device.Size // bytes of the request; 0 for no place
	dynamic bool        // smaller requests may use it
}

// plan is the result of planning.
type plan struct {
	places []place     // of the head, then of the cycle
	head   int         // places of the head
	height device.Size // bytes of the arena
	align  device.Size // of the arena
}

// planner computes a plan from a profile.
type planner struct {
	profile  *planned.Profile
	requests []planned.Expected // of head and cycle
	buffers  []packing.Buffer   // their lives
	dynamic  []bool
	head     int // requests of the head
	from, to int // calls of the cycle
}

// newPlan computes the plan of a profile. Without requests, or if their sizes overflow, it is
// empty.
func newPlan(profile *planned.Profile) plan {
	p := planner{profile: profile, from: profile.Calls, to: profile.Calls}
	marks := append(slices.Clone(profile.Iterations), profile.Calls, profile.Calls)
	if len(profile.Iterations) > 1 {
		p.from, p.to = marks[1], marks[2]
	}
	p.requests = profile.Between(0, p.to)
	p.head = len(profile.Between(0, p.from))
	p.dynamic = make([]bool, len(p.requests))
	p.live()
	if len(profile.Iterations) > 2 {
		p.compare(profile.Between(marks[2], marks[3]))
	}
	return p.pack()
}

// live sets the lives of the requests.
func (p *planner) live() {
	for i, r := range p.requests {
		b := packing.Buffer{
			Lower: int64(r.Birth), Upper: int64(r.Death), Size: device.AlignUp(r.Size, planned.Quantum),
			Align: min(r.Align, planned.MostAlign),
		}
		if r.Death >= p.to {
			b.Upper = int64(p.to)
			if i >= p.head {
				b.Lower = int64(p.from) // the next cycle requests it again
			}
		}
		p.buffers = append(p.buffers, b)
	}
}

// compare makes the requests of the cycle dynamic that have another size in the next iteration.
func (p *planner) compare(next []planned.Expected) {
	for i := p.head; i < len(p.requests) && i-p.head < len(next); i++ {
		if other := next[i-p.head].Size; other != p.requests[i].Size {
			p.dynamic[i] = true
			p.requests[i].Size = max(p.requests[i].Size, other)
			p.buffers[i].Size = device.AlignUp(p.requests[i].Size, planned.Quantum)
		}
	}
}

// group is a set of static requests that is placed as one buffer.
type group struct {
	packing.Buffer
	members []int32
}

// add stacks a request on a group.
func (g *group) add(i int32, b *packing.Buffer) {
	if len(g.members) == 0 {
		g.Lower, g.Upper = b.Lower, b.Upper
	}
	g.Lower, g.Upper = min(g.Lower, b.Lower), max(g.Upper, b.Upper)
	g.Size = device.AlignUp(g.Size, b.Align) + b.Size
	g.Align = max(g.Align, b.Align)
	g.members = append(g.members, i)
}

// groups returns the static requests, each alone or, grouped, with the others that are
// requested in the same phase and freed in the same later one.
func (p *planner) groups(grouped bool) (all []group) {
	type key struct{ from, to int }
	crossing := map[key]int{}
	for i := range p.requests {
		if p.dynamic[i] {
			continue
		}
		b := &p.buffers[i]
		k := key{p.profile.Phase(p.requests[i].Birth), p.profile.Phase(p.requests[i].Death)}
		at, found := crossing[k]
		if !grouped || k.from == k.to || !found {
			at = len(all)
			all = append(all, group{})
			crossing[k] = at
		}
		all[at].add(int32(i), b)
	}
	return all
}

// pack places the static requests in the lowest of six ways, and the dynamic ones around them.
func (p *planner) pack() plan {
	var best []device.Size
	var height device.Size
	for _, grouped := range []bool{true, false} {
		groups := p.groups(grouped)
		buffers := make([]packing.Buffer, len(groups))
		for i := range groups {
			buffers[i] = groups[i].Buffer
		}
		problem, err := packing.New(buffers)
		if err != nil {
			return plan{}
		}
		for _, o := range packing.Orders() {
			offsets := make([]device.Size, len(buffers))
			k := problem.Pack(problem.Sorted(o), nil, offsets, mostSteps)
			if best == nil || k.Height < height {
				best, height = p.spread(groups, offsets), k.Height
			}
		}
	}
	if !p.around(best) {
		return plan{}
	}
	return p.result(best, height)
}

// spread returns the offset of each request, given the offsets of the groups.
func (p *planner) spread(groups []group, offsets []device.Size) []device.Size {
	all := make([]device.Size, len(p.requests))
	for i := range groups {
		at := offsets[i]
		for _, m := range groups[i].members {
			b := &p.buffers[m]
			all[m] = device.AlignUp(at, b.Align)
			at = all[m] + b.Size
		}
	}
	return all
}

// around packs the dynamic requests around the static ones, and reports whether it could.
func (p *planner) around(offsets []device.Size) bool {
	problem, err := packing.New(p.buffers)
	if err != nil {
		return false
	}
	var static, dynamic []int32
	for _, i := range problem.Sorted(packing.BySize) {
		if p.dynamic[i] {
			dynamic = append(dynamic, i)
		} else {
			static = append(static, i)
		}
	}
	problem.Pack(dynamic, static, offsets, mostSteps)
	return true
}

// result returns the plan for offsets of the requests. Requests above the static ones have no
// place.
func (p *planner) result(offsets []device.Size, height device.Size) plan {
	r := plan{head: p.head, height: height, align: planned.Quantum, places: make([]place, len(p.requests))}
	for i, b := range p.buffers {
		if offsets[i]+b.Size <= height {
			r.places[i] = place{offsets[i], p.requests[i].Size, p.dynamic[i]}
			r.align = max(r.align, b.Align)
		}
	}
	return r
}
