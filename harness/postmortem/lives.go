package postmortem

import (
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/history"
	"github.com/vramyard/vramyard/harness/snapshot"
)

// unknownID is the tag of a block of which no allocation is recorded.
const unknownID = ^uint64(0)

// lives is what the program has at an entry of a recording.
type lives struct {
	of    *snapshot.Snapshot
	at    map[uint64]uint64 // ids of what is live or pending, by address
	lies  map[uint64]uint64 // addresses, by id
	wait  map[uint64]bool   // ids of what is pending
	born  map[uint64]int    // entries, by id; opening blocks have none
	calls map[uint64]uint32 // stacks, by id
}

// livesAt walks a recording up to an entry.
func (r *Recording) livesAt(entry int) *lives {
	l := &lives{
		of: r.Snapshot, at: map[uint64]uint64{}, lies: map[uint64]uint64{}, wait: map[uint64]bool{}, born: map[uint64]int{},
		calls: map[uint64]uint32{},
	}
	stacks := map[uint64]uint32{}
	for i := range r.Course.Device.Segments {
		for _, b := range r.Course.Device.Segments[i].Blocks {
			stacks[b.Addr] = b.Stack
		}
	}
	for id, o := range r.Course.Opening {
		l.begin(uint64(id), o.Addr)
		if l.wait[uint64(id)] = o.Pending; o.Granted != 0 {
			l.calls[uint64(id)] = stacks[o.Addr] // it is there to the end
		}
	}
	endings := r.Course.Endings
	for i, s := range r.Course.Steps[:entry] {
		id := uint64(r.Course.IDs[i])
		switch s {
		case history.Alloc:
			for ; len(endings) > 0 && endings[0].Entry == i; endings = endings[1:] {
				l.end(uint64(endings[0].ID))
			}
			e := r.Course.Device.History.At(i)
			l.begin(id, e.Addr)
			l.born[id], l.calls[id] = i, e.Stack
		case history.FreeLater:
			l.wait[id] = true
		case history.Free, history.Completed:
			l.end(id)
		}
	}
	return l
}

// begin enters an allocation.
func (l *lives) begin(id, addr uint64) { l.at[addr], l.lies[id] = id, addr }

// end removes an allocation, unless another one lies there already.
func (l *lives) end(id uint64) {
	if a := l.lies[id]; l.at[a] == id {
		delete(l.at, a)
	}
	delete(l.lies, id)
	delete(l.wait, id)
}

// mark makes chunks pending whose allocations are.
func (l *lives) mark(chunks []alloc.Chunk) {
	for i := range chunks {
		if c := &chunks[i]; c.State == alloc.Live && l.wait[c.Tag] {
			c.State = alloc.Pending
		}
	}
}

// stack returns the places of a stack, the innermost first.
func (l *lives) stack(id uint64) (places []string) {
	for frame := range l.of.Stack(l.calls[id]) {
		f := l.of.Frames[frame]
		places = append(places, l.of.Strings[f.File]+":"+strconv.FormatInt(f.Line, 10)+" "+l.of.Strings[f.Function])
	}
	return places
}

// who returns who asked for the blocks that are there at an entry.
func (l *lives) who(entry int) Who {
	return func(tag uint64) Owner {
		if tag == unknownID {
			return Owner{Born: -1}
		}
		o := Owner{Known: true, ID: tag, Born: -1, Age: entry, Stack: l.stack(tag)}
		if born, ok := l.born[tag]; ok {
			o.Born, o.Age = born, entry-born
		}
		return o
	}
}

// fileChunks returns the segments of the file as a Walk would show them.
func (r *Recording) fileChunks(l *lives, pools [][2]uint64) (list []alloc.Chunk) {
	for i := range r.Course.Device.Segments {
		s := &r.Course.Device.Segments[i]
		c := alloc.Chunk{
			Region: device.Addr(s.Addr), Stream: device.Stream(s.Stream), Pool: poolOf(pools, s.Pool), Class: alloc.ClassSmall,
		}
		if s.Large {
			c.Class = alloc.ClassLarge
		}
		if s.Expandable {
			c.Owner = alloc.OwnerExpandable
		}
		for _, b := range s.Blocks {
			x := c
			x.Addr, x.Size = device.Addr(b.Addr), device.Size(b.Size)
			if b.State == snapshot.Inactive {
				x.Was = device.Size(b.Requested)
				list = append(list, x)
				continue
			}
			x.State, x.Requested, x.Tag = alloc.Live, device.Size(b.Requested), unknownID
			if b.State == snapshot.ActivePendingFree {
				x.State = alloc.Pending
			}
			if id, ok := l.at[b.Addr]; ok {
				x.Tag = id
			}
			list = append(list, x)
		}
	}
	return list
}
