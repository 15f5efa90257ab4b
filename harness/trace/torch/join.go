package torch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/vramyard/vramyard/internal/budget"
)

// File is a snapshot with the name of its file, for messages.
type File struct {
	Name      string // as messages show it
	*Snapshot        // its content
}

// clockSlack is the most microseconds by which the times of one entry may differ between two
// snapshots: PyTorch converts ticks of the processor to times whenever it writes a snapshot.
const clockSlack = 1000

// Join joins snapshots of one process into a snapshot with every entry once and the memory of the
// latest file. It sorts files by time and consumes their snapshots.
//
// The settings are the earliest file's. If later ones differ, an entry [ActionConf] follows
// the last entry of the earlier file: nearer the files do not show when the program changed them.
//
// Consecutive files must overlap: the entries with which the earlier one ends, compared by action,
// address, size and stream, must begin the later one at the same times, up to a millisecond.
// Otherwise entries are lost, or the files are of different processes, and Join fails.
func Join(files []File, memory *budget.Budget) (*Snapshot, error) {
	ends := map[*Snapshot]int64{}
	for _, f := range files {
		end := NoTime
		for i := range f.Devices {
			if h := &f.Devices[i].History; h.Len() > 0 {
				end = max(end, h.At(h.Len()-1).Time)
			}
		}
		if end == NoTime {
			return nil, fmt.Errorf("%s: has no history with times, so its place in the run is unknown: "+
				"want snapshots of PyTorch 2.2 or newer", f.Name)
		}
		ends[f.Snapshot] = end
	}
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(ends[a.Snapshot], ends[b.Snapshot]) })
	into := files[0].Snapshot
	j := joiner{into: into, in: NewInterner(into), memory: memory, settings: into.Settings}
	for i, f := range files[1:] {
		j.before = files[i]
		if err := j.join(f); err != nil {
			return nil, err
		}
	}
	return into, nil
}

// joiner joins later snapshots to an earlier one.
type joiner struct {
	into     *Snapshot
	in       *Interner
	memory   *budget.Budget
	before   File      // joined last; its own history, since the joined one has more entries
	settings []Setting // last known

	strings, calls []uint32 // by index in the next file: the index in the joined snapshot
	conf           string   // settings of the next file
	changed        bool     // they are new
}

func (j *joiner) join(f File) error {
	shared := make([]int, len(f.Devices)) // entries that both histories of a device have
	for i := range j.before.Devices {
		d := &j.before.Devices[i]
		if d.History.Len() == 0 {
			continue
		}
		at := slices.IndexFunc(f.Devices, func(o Device) bool { return o.Ordinal == d.Ordinal && o.History.Len() > 0 })
		if at < 0 {
			return fmt.Errorf("%s: has no history of %s as %s has: want snapshots of one process", f.Name,
				PartOf(d.Ordinal), j.before.Name)
		}
		var err error
		if shared[at], err = j.overlap(&d.History, &f.Devices[at].History); err != nil {
			return err
		}
		if shared[at] == 0 {
			return j.errApart(f.Name, d, &f.Devices[at].History)
		}
	}
	if err := j.addTables(f.Snapshot); err != nil {
		return err
	}
	j.conf, j.changed = changedConf(j.settings, f.Settings)
	if len(f.Settings) > 0 {
		j.settings = f.Settings
	}
	j.addAnnotations(f.Snapshot, shared)
	var all []Device
	for i := range f.Devices {
		from, d := &f.Devices[i], Device{Ordinal: f.Devices[i].Ordinal}
		if at := slices.IndexFunc(j.into.Devices, func(o Device) bool { return o.Ordinal == d.Ordinal }); at >= 0 {
			d = j.into.Devices[at]
		}
		if err := j.extend(&d, from, shared[i]); err != nil {
			return err
		}
		all = append(all, d)
	}
	j.into.Devices = all
	for _, text := range f.Unknown {
		if !slices.Contains(j.into.Unknown, text) {
			j.into.Unknown = append(j.into.Unknown, text)
		}
	}
	return nil
}

// errApart returns the error for a history that does not begin with the last entries of the
// earlier one.
func (j *joiner) errApart(name string, d *Device, later *History) error {
	end, start := d.History.At(d.History.Len()-1).Time, later.At(0).Time
	if start > end {
		return fmt.Errorf("%s: the history of %s begins at %d µs, %v after %s ends at %d µs, and the entries between "+
			"them are lost: raise max_entries of _record_memory_history, or write snapshots more often", name,
			PartOf(d.Ordinal), start, time.Duration(start-end)*time.Microsecond, j.before.Name, end)
	}
	return fmt.Errorf("%s: the history of %s has other entries than %s from %d to %d µs: want snapshots of one process",
		name, PartOf(d.Ordinal), j.before.Name, start, end)
}

// entryKey identifies an entry beside its time.
type entryKey struct {
	action     Action
	addr, size uint64
	stream     int64
}

func (h *History) key(i int) entryKey {
	e := h.At(i)
	return entryKey{e.Action, e.Addr, e.Size, h.Streams[e.Stream]}
}

// overlap returns the number of entries with which history a ends and b begins, or 0.
// A program that repeats its steps has several candidates; the one whose times agree best is taken.
// It takes a step for each entry, as the search of Knuth, Morris and Pratt does.
func (j *joiner) overlap(a, b *History) (int, error) {
	most := min(a.Len(), b.Len())
	borders, err := budget.Make[uint32](j.memory, most) // by length minus 1: of b's beginning, that it also ends with
	if err != nil {
		return 0, err
	}
	defer func() { budget.Release(j.memory, borders) }()
	next := func(n int, k entryKey) int {
		for n > 0 && (n == most || b.key(n) != k) {
			n = int(borders[n-1])
		}
		if b.key(n) == k {
			n++
		}
		return n
	}
	n := 0
	borders = append(borders, 0)
	for i := 1; i < most; i++ {
		n = next(n, b.key(i))
		borders = append(borders, uint32(n))
	}
	n = 0
	for i := a.Len() - most; i < a.Len(); i++ {
		n = next(n, a.key(i))
	}
	best, least := 0, int64(2*clockSlack+1)
	for ; n > 0; n = int(borders[n-1]) {
		first := apart(a.At(a.Len()-n).Time, b.At(0).Time)
		last := apart(a.At(a.Len()-1).Time, b.At(n-1).Time)
		if max(first, last) <= clockSlack && first+last < least {
			best, least = n, first+last
		}
	}
	return best, nil
}

// apart returns the distance of two times.
func apart(a, b int64) int64 {
	if (a == NoTime) != (b == NoTime) {
		return clockSlack + 1
	}
	return max(a-b, b-a)
}

// addTables adds the strings, frames and stacks of the next file.
func (j *joiner) addTables(s *Snapshot) error {
	if err := j.memory.Take(4 * int64(len(s.Strings)+len(s.Frames)+s.Calls.n)); err != nil {
		return err
	}
	j.strings, j.calls = make([]uint32, max(1, len(s.Strings))), make([]uint32, max(1, s.Calls.n))
	for i, text := range s.Strings {
		j.strings[i] = j.in.String(text)
	}
	frames := make([]uint32, len(s.Frames))
	for i := 1; i < len(s.Frames); i++ {
		f := s.Frames[i]
		frames[i] = j.in.Frame(Frame{File: j.strings[f.File], Function: j.strings[f.Function], Line: f.Line})
	}
	for i := 1; i < s.Calls.n; i++ { // a caller precedes its callees
		c := s.Calls.at(uint32(i))
		j.calls[i] = j.in.call(Call{Frame: frames[c.Frame], Caller: j.calls[c.Caller]})
	}
	return nil
}

// changedConf returns the settings that a call must have had to lead from one file's to another's,
// and whether there was one.
func changedConf(from, to []Setting) (string, bool) {
	if len(from) == 0 || len(to) == 0 {
		return "", false
	}
	before, text := Conf(from), Conf(to)
	grew, _ := setting(from, expandableKey)
	if grows, _ := setting(to, expandableKey); grew == "True" && grows == "False" {
		text = withExpandable(text, "False") // no other option resets it
	}
	return text, text != before
}

// addAnnotations adds the annotations of the next file from the end of the shared entries on. Up to
// there the earlier file has them.
func (j *joiner) addAnnotations(s *Snapshot, shared []int) {
	type bound struct{ end, shift int64 }
	bounds := map[int]bound{}
	for i, n := range shared {
		if n > 0 {
			d := &s.Devices[i]
			end, later := j.endOf(d.Ordinal), d.History.At(n-1).Time
			bounds[d.Ordinal] = bound{end, end - later}
		}
	}
	j.into.Annotations = slices.DeleteFunc(j.into.Annotations, func(a Annotation) bool {
		b, ok := bounds[a.Device]
		return !ok || a.Time > b.end
	})
	for _, a := range s.Annotations {
		b, ok := bounds[a.Device]
		a.Name = j.strings[a.Name]
		if a.Time != NoTime {
			a.Time += b.shift
		}
		if !ok || a.Time > b.end {
			j.into.Annotations = append(j.into.Annotations, a)
		}
	}
}

// endOf returns the time of the last entry of a device.
func (j *joiner) endOf(ordinal int) int64 {
	for i := range j.into.Devices {
		if d := &j.into.Devices[i]; d.Ordinal == ordinal {
			return d.History.At(d.History.Len() - 1).Time
		}
	}
	return NoTime
}

// extend adds the entries of a later history after the shared ones, and replaces the segments.
func (j *joiner) extend(d, from *Device, shared int) error {
	h, later := &d.History, &from.History
	streams, pools, err := j.numbers(h, later)
	if err != nil {
		return err
	}
	packed, end, shift := h.packed, NoTime, int64(0)
	switch {
	case shared > 0:
		end = h.At(h.Len() - 1).Time
		shift = end - later.At(shared-1).Time
	case later.Len() > 0:
		end = later.At(0).Time
	}
	if d.Joined == 0 {
		d.Joined = cmp.Or(h.Len(), later.Len())
	}
	if j.changed && later.Len() > 0 {
		h.AppendConf(j.conf, 0, end)
	}
	for i := shared; i < later.Len(); i++ {
		e := later.At(i)
		e.Stream, e.Pool = streams[e.Stream], pools[e.Pool]
		e.Stack = j.calls[e.Stack]
		if e.Action == ActionConf {
			h.addConf(&e, later.Confs[e.Category])
		} else {
			e.Category = j.strings[e.Category]
		}
		if e.Time != NoTime {
			e.Time = max(e.Time+shift, 0)
		}
		h.Append(e)
	}
	blocks := 0
	for i := range from.Segments {
		s := &from.Segments[i]
		s.Stack, s.Blocks = j.calls[s.Stack], slices.Clone(s.Blocks)
		for k := range s.Blocks {
			s.Blocks[k].Stack = j.calls[s.Blocks[k].Stack]
		}
		blocks += len(s.Blocks)
	}
	d.Segments = from.Segments
	const blockSize = 48
	return j.memory.Take(int64(h.packed-packed) + int64(blocks)*blockSize)
}

// numbers adds the streams and pools of a later history, and returns their new indices.
func (j *joiner) numbers(h, later *History) (streams, pools []uint16, err error) {
	if streams, err = renumbered(&h.Streams, later.Streams); err != nil {
		return nil, nil, err
	}
	if h.Len() == 0 && later.Pools != nil {
		h.Pools = [][2]uint64{{}}
	}
	if h.Pools == nil || later.Pools == nil {
		h.Pools = nil // not known of all entries
		return streams, make([]uint16, max(1, len(later.Pools))), nil
	}
	pools, err = renumbered(&h.Pools, later.Pools)
	return streams, pools, err
}

// renumbered adds values to a list, each once, and returns their indices.
func renumbered[K comparable](list *[]K, more []K) ([]uint16, error) {
	known := map[K]uint16{}
	for i, v := range *list {
		known[v] = uint16(i)
	}
	var ids []uint16
	for _, v := range more {
		id, ok := indexOf(known, list, v)
		if !ok {
			return nil, errTooMany
		}
		ids = append(ids, id)
	}
	return ids, nil
}
