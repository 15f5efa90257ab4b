package torch

import (
	"cmp"
	"slices"
)

// state is the state of the memory at an address.
type state uint8

const (
	vacant state = iota
	live
	pending
)

// addrState is the state of an address at one entry of the history.
type addrState struct {
	state  state
	id     uint32 // forward pass: the last allocation there; backward pass: stack of the file's block
	size   uint64 // bytes requested
	stream int64  // handle
}

// solveOpeningBlocks finds the blocks that existed when the history began: it reads the history
// backwards from the file's blocks.
func (c *Timeline) solveOpeningBlocks(n *numbers) {
	h, r := &c.Device.History, c.Report
	states := make([]addrState, len(n.addrs))
	for b, s := range inUse(c.Device.Segments) {
		p := &states[n.of(b.Addr)]
		if p.state != vacant {
			r.addFinding(blockTwice, -1, b.Addr)
		}
		*p = addrState{state: live, id: b.Stack, size: b.Requested, stream: s.Stream}
		if b.State == ActivePendingFree {
			p.state = pending
		}
	}
	for i := h.Len() - 1; i >= 0; i-- {
		if n.entry[i] == 0 {
			continue
		}
		e, p := h.At(i), &states[n.entry[i]]
		switch e.Action {
		case ActionAlloc:
			p.state = vacant
		case ActionFreeCompleted:
			if p.state != vacant {
				r.addFinding(useUnexplained, i, e.Addr)
			}
			*p = addrState{state: live, size: e.Size, stream: h.Streams[e.Stream]}
			if c.requested {
				p.state = pending
			}
		case ActionFreeRequested:
			if p.state == live {
				r.addFinding(useUnexplained, i, e.Addr)
			}
			*p = addrState{state: live, size: e.Size, stream: h.Streams[e.Stream]}
		}
	}
	c.collectOpening(n, states)
}

// collectOpening lists the blocks at the beginning, by stream and address.
func (c *Timeline) collectOpening(n *numbers, states []addrState) {
	for k, p := range states {
		if p.state != vacant {
			c.Opening = append(c.Opening, OpeningAlloc{
				Addr: uint64(n.addrs[k]), Size: p.size, Stream: p.stream, Pending: p.state == pending, Stack: p.id,
			})
		}
	}
	slices.SortFunc(c.Opening, func(a, b OpeningAlloc) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Addr, b.Addr))
	})
}

// forwardPass is the state of forward.
type forwardPass struct {
	*Timeline
	states   []addrState // by number of the address
	next     uint32      // id of the next allocation
	reserved reservations
}

// forward replays the history from its opening state, assigns an id to each allocation and compares
// the final state with the file's blocks.
func (c *Timeline) forward(n *numbers) {
	h := &c.Device.History
	w := &forwardPass{Timeline: c, states: make([]addrState, len(n.addrs)), next: uint32(len(c.Opening))}
	c.Steps, c.IDs = make([]Step, h.Len()), make([]uint32, h.Len())
	w.reserved.open(c)
	for id, o := range c.Opening {
		p := &w.states[n.of(o.Addr)]
		*p = addrState{state: live, id: uint32(id), size: o.Size, stream: o.Stream}
		if o.Pending {
			p.state = pending
		}
	}
	folded := -1
	for i := range h.Len() {
		e, p := h.At(i), &w.states[n.entry[i]]
		switch e.Action {
		case ActionAlloc:
			w.alloc(i, &e, p)
		case ActionFreeRequested:
			// The completion is either the next entry or a later one.
			if i+1 < h.Len() && n.entry[i+1] == n.entry[i] && h.At(i+1).Action == ActionFreeCompleted {
				folded = i + 1
			}
			w.free(i, &e, p, folded == i+1)
		case ActionFreeCompleted:
			if folded != i {
				w.complete(i, &e, p)
			}
		case ActionOOM:
			c.Steps[i] = Refused
			w.reserved.refused(e.Addr)
			c.LastRefusal = &Refusal{Entry: i, Reserved: w.reserved.bytes, DeviceFree: e.Addr}
		default:
			w.reserved.replay(c, i)
		}
	}
	w.compare(n)
}

func (w *forwardPass) alloc(i int, e *Entry, p *addrState) {
	if p.state != vacant {
		w.Report.addFinding(allocOnLive, i, e.Addr)
		w.Endings = append(w.Endings, Ending{i, p.id, p.state == pending})
	}
	if !w.reserved.holds(e.Addr, e.Size) {
		w.Report.addFinding(allocOutside, i, e.Addr)
	}
	*p = addrState{live, w.next, e.Size, w.Device.History.Streams[e.Stream]}
	w.Steps[i], w.IDs[i] = Alloc, w.next
	w.next++
}

// free handles a free by the program. If atOnce is set, the next entry completes it.
func (w *forwardPass) free(i int, e *Entry, p *addrState, atOnce bool) {
	switch p.state {
	case vacant:
		w.Report.addFinding(freeOfUnknown, i, e.Addr)
		return
	case pending:
		w.Report.addFinding(freeTwice, i, e.Addr)
		if atOnce {
			w.finish(i, p, Completed)
		}
		return
	}
	if p.size != e.Size {
		w.Report.addFinding(sizeDiffers, i, e.Addr)
	}
	if atOnce {
		w.finish(i, p, Free)
		return
	}
	w.Steps[i], w.IDs[i] = FreeLater, p.id
	p.state = pending
}

// complete handles memory that becomes free.
func (w *forwardPass) complete(i int, e *Entry, p *addrState) {
	switch p.state {
	case vacant:
		w.Report.addFinding(freeOfUnknown, i, e.Addr)
	case pending:
		w.finish(i, p, Completed)
	case live:
		if w.requested {
			w.Report.addFinding(freeUnrequested, i, e.Addr)
		}
		w.finish(i, p, Free)
	}
}

// finish records the last step of an allocation.
func (w *forwardPass) finish(i int, p *addrState, s Step) {
	w.Steps[i], w.IDs[i] = s, p.id
	p.state = vacant
}

// compare compares the final state with the file's blocks.
func (w *forwardPass) compare(n *numbers) {
	r := w.Report
	for k, p := range w.states {
		switch p.state {
		case live:
			r.EndLive.add(p.size)
		case pending:
			r.EndPending.add(p.size)
			w.Pending = append(w.Pending, w.states[k].id)
		}
	}
	slices.Sort(w.Pending)
	for b := range inUse(w.Device.Segments) {
		p := &w.states[n.of(b.Addr)]
		switch {
		case p.state == vacant:
			r.addFinding(blockUnexplained, -1, b.Addr)
		case w.requested && (p.state == pending) != (b.State == ActivePendingFree):
			r.addFinding(stateDiffers, -1, b.Addr)
		case p.size != b.Requested:
			r.addFinding(sizeDiffers, -1, b.Addr)
		case int(p.id) < len(w.Opening):
			w.Opening[p.id].Granted = b.Size // unchanged since the beginning
		}
		p.state = vacant
	}
	for k, p := range w.states {
		if p.state != vacant {
			r.addFinding(liveNotInFile, -1, uint64(n.addrs[k]))
		}
	}
}
