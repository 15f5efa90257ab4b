package torch

import (
	"cmp"
	"slices"
)

// state is what lies at an address.
type state uint8

const (
	vacant state = iota
	live
	pending
)

// place is what is known of an address at one moment.
type place struct {
	state  state
	id     uint32 // forward: of the allocation that is or was there; backward: stack of the file's block
	size   uint64 // bytes asked for
	stream int64  // handle
}

// back reads the history backwards from the file's blocks and finds what was there at its
// beginning.
func (c *Course) back(n *numbers) {
	h, r := &c.Device.History, c.Report
	places := make([]place, len(n.addrs))
	for b, s := range inUse(c.Device.Segments) {
		p := &places[n.of(b.Addr)]
		if p.state != vacant {
			r.find(blockTwice, -1, b.Addr)
		}
		*p = place{state: live, id: b.Stack, size: b.Requested, stream: s.Stream}
		if b.State == ActivePendingFree {
			p.state = pending
		}
	}
	for i := h.Len() - 1; i >= 0; i-- {
		if n.entry[i] == 0 {
			continue
		}
		e, p := h.At(i), &places[n.entry[i]]
		switch e.Action {
		case ActionAlloc:
			p.state = vacant
		case ActionFreeCompleted:
			if p.state != vacant {
				r.find(useUnexplained, i, e.Addr)
			}
			*p = place{state: live, size: e.Size, stream: h.Streams[e.Stream]}
			if c.requested {
				p.state = pending
			}
		case ActionFreeRequested:
			if p.state == live {
				r.find(useUnexplained, i, e.Addr)
			}
			*p = place{state: live, size: e.Size, stream: h.Streams[e.Stream]}
		}
	}
	c.open(n, places)
}

// open lists what was there at the beginning.
func (c *Course) open(n *numbers, places []place) {
	for k, p := range places {
		if p.state != vacant {
			c.Opening = append(c.Opening, Life{
				Addr: uint64(n.addrs[k]), Size: p.size, Stream: p.stream, Pending: p.state == pending, Stack: p.id,
			})
		}
	}
	slices.SortFunc(c.Opening, func(a, b Life) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Addr, b.Addr))
	})
}

// walk is the way forward through a history.
type walk struct {
	*Course
	places []place // by number of the address
	next   uint32  // id of the next allocation
	books  books
}

// forward reads the history from its opening state on, gives each allocation its id and compares
// what comes out with the file's blocks.
func (c *Course) forward(n *numbers) {
	h := &c.Device.History
	w := &walk{Course: c, places: make([]place, len(n.addrs)), next: uint32(len(c.Opening))}
	c.Steps, c.IDs = make([]Step, h.Len()), make([]uint32, h.Len())
	w.books.open(c)
	for id, o := range c.Opening {
		p := &w.places[n.of(o.Addr)]
		*p = place{state: live, id: uint32(id), size: o.Size, stream: o.Stream}
		if o.Pending {
			p.state = pending
		}
	}
	folded := -1
	for i := range h.Len() {
		e, p := h.At(i), &w.places[n.entry[i]]
		switch e.Action {
		case ActionAlloc:
			w.alloc(i, &e, p)
		case ActionFreeRequested:
			// What completes it comes next, or some time later.
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
			w.books.refused(e.Addr)
			c.LastRefusal = &Refusal{Entry: i, Reserved: w.books.bytes, DeviceFree: e.Addr}
		default:
			w.books.move(c, i)
		}
	}
	w.compare(n)
}

// alloc takes the beginning of an allocation.
func (w *walk) alloc(i int, e *Entry, p *place) {
	if p.state != vacant {
		w.Report.find(allocOnLive, i, e.Addr)
		w.Endings = append(w.Endings, Ending{i, p.id, p.state == pending})
	}
	if !w.books.holds(e.Addr, e.Size) {
		w.Report.find(allocOutside, i, e.Addr)
	}
	*p = place{live, w.next, e.Size, w.Device.History.Streams[e.Stream]}
	w.Steps[i], w.IDs[i] = Alloc, w.next
	w.next++
}

// free takes a free by the program; atOnce says that its completion comes next.
func (w *walk) free(i int, e *Entry, p *place, atOnce bool) {
	switch p.state {
	case vacant:
		w.Report.find(freeOfUnknown, i, e.Addr)
		return
	case pending:
		w.Report.find(freeTwice, i, e.Addr)
		if atOnce {
			w.end(i, p, Completed)
		}
		return
	}
	if p.size != e.Size {
		w.Report.find(sizeDiffers, i, e.Addr)
	}
	if atOnce {
		w.end(i, p, Free)
		return
	}
	w.Steps[i], w.IDs[i] = FreeLater, p.id
	p.state = pending
}

// complete takes memory that becomes free.
func (w *walk) complete(i int, e *Entry, p *place) {
	switch p.state {
	case vacant:
		w.Report.find(freeOfUnknown, i, e.Addr)
	case pending:
		w.end(i, p, Completed)
	case live:
		if w.requested {
			w.Report.find(freeUnrequested, i, e.Addr)
		}
		w.end(i, p, Free)
	}
}

// end takes the last step of an allocation.
func (w *walk) end(i int, p *place, s Step) {
	w.Steps[i], w.IDs[i] = s, p.id
	p.state = vacant
}

// compare compares what is there at the end with the file's blocks.
func (w *walk) compare(n *numbers) {
	r := w.Report
	for k, p := range w.places {
		switch p.state {
		case live:
			r.EndLive.add(p.size)
		case pending:
			r.EndPending.add(p.size)
			w.Pending = append(w.Pending, w.places[k].id)
		}
	}
	slices.Sort(w.Pending)
	for b := range inUse(w.Device.Segments) {
		p := &w.places[n.of(b.Addr)]
		switch {
		case p.state == vacant:
			r.find(blockUnexplained, -1, b.Addr)
		case w.requested && (p.state == pending) != (b.State == ActivePendingFree):
			r.find(stateDiffers, -1, b.Addr)
		case p.size != b.Requested:
			r.find(sizeDiffers, -1, b.Addr)
		case int(p.id) < len(w.Opening):
			w.Opening[p.id].Granted = b.Size // it has not changed in between
		}
		p.state = vacant
	}
	for k, p := range w.places {
		if p.state != vacant {
			r.find(liveNotInFile, -1, uint64(n.addrs[k]))
		}
	}
}
