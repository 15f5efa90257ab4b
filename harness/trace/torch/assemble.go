package torch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// result assembles the snapshot from the value that the file built.
func (m *machine) result() error {
	if len(m.marks) != 0 || len(m.stack) != 1 || m.stack[0].n > 1 {
		return m.errorf("%d values and %d marks are left, want one value", len(m.stack), len(m.marks))
	}
	root, err := m.finish(m.stack[0])
	if err != nil {
		return err
	}
	m.at = 0
	found, err := m.find(root)
	if err != nil {
		return err
	}
	if found.kind == isDict {
		err = m.snapshot(m.nodes.ref(found.x))
	} else {
		err = m.addSegments(found)
	}
	for i := range m.s.Devices {
		d := &m.s.Devices[i]
		slices.SortStableFunc(d.Segments, func(a, b Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	return err
}

// keyText returns a key for error messages.
func (m *machine) keyText(key value) string {
	text, ok := m.plain(key)
	if !ok {
		return kindNames[key.kind]
	}
	if key.kind == isText {
		return quote(text)
	}
	return text
}

// keyList returns the first keys of a dictionary for error messages.
func (m *machine) keyList(v value) string {
	if v.kind != isDict {
		return ""
	}
	const most = 5
	var keys []string
	for i, key := range m.nodes.ref(v.x).items {
		if i%2 == 0 && len(keys) <= most {
			keys = append(keys, m.keyText(key))
		}
	}
	if len(keys) > most {
		keys[most] = "…"
	}
	if len(keys) == 0 {
		return " without keys"
	}
	return " of " + strings.Join(keys, ", ")
}

// snapshot reads the parts of the snapshot's dictionary.
func (m *machine) snapshot(nd *node) error {
	m.at = nd.at
	var segments, traces, settings, annotations value
	for i := 0; i < len(nd.items); i += 2 {
		key, v := nd.items[i], nd.items[i+1]
		switch m.wordOf(key) {
		case keySegments:
			segments = v
		case keyTraces:
			traces = v
		case keySettings:
			settings = v
		case keyAnnotations:
			annotations = v
		default:
			m.ignore(snapshotRow, key)
		}
	}
	if err := m.addSegments(segments); err != nil {
		return err
	}
	if err := m.addTraces(traces); err != nil {
		return err
	}
	if err := m.addSettings(settings); err != nil {
		return err
	}
	return m.addAnnotations(annotations)
}

func (v value) absent() bool { return v.kind == 0 || v.kind == isNone || v.kind == isEmpty }

// errPart returns the error for a bad part of the snapshot. For a list it names the first wrong
// element.
func (m *machine) errPart(part string, v value, want string) error {
	if v.kind == isList || v.kind == isDict {
		nd := m.nodes.ref(v.x)
		m.at = nd.at
		for i, el := range nd.items {
			if !el.isRow() && !nd.dict {
				if el.kind == isDict {
					m.at = m.nodes.ref(el.x).at
				}
				return m.errorf("%s has %s%s in place %d, want %s", part, m.describe(el), m.keyList(el), i, want)
			}
		}
	}
	return m.errorf("%s is %s%s, want %s", part, m.describe(v), m.keyList(v), want)
}

func (m *machine) addSegments(v value) error {
	if v.absent() {
		return nil
	}
	if v.kind != isSegments {
		return m.errPart("segments", v, "segments")
	}
	r := m.runs[v.x]
	counts := map[int]int{}
	for i := range r.n {
		counts[m.segments.at(r.first+i).device]++
	}
	for i := range r.n {
		row := m.segments.at(r.first + i)
		if row.blocks.kind == isBlocks {
			blocks := &m.runs[row.blocks.x]
			if blocks.n == 0 {
				return m.errorf("segments share one list of blocks, want a list each")
			}
			row.seg.Blocks = m.blocks.rows(*blocks)
			blocks.n = 0 // each list of blocks may be used once
		}
		row.seg.complete(row.sums)
		d := m.device(row.device)
		if d.Segments == nil {
			d.Segments = make([]Segment, 0, counts[row.device])
		}
		d.Segments = append(d.Segments, row.seg)
	}
	return nil
}

// complete computes the addresses of blocks and the sums, which files before PyTorch 2.1 lack.
func (s *Segment) complete(sums bool) {
	at, copied := s.Addr, false
	for i, b := range s.Blocks {
		if b.Addr == noAddr {
			if !copied { // another segment of a malformed file may share these blocks
				s.Blocks, copied = slices.Clone(s.Blocks), true
			}
			s.Blocks[i].Addr = at
		}
		at = s.Blocks[i].Addr + b.Size
	}
	if sums {
		return
	}
	s.Allocated, s.Active, s.Requested = 0, 0, 0
	for _, b := range s.Blocks {
		if b.State == Inactive {
			continue
		}
		s.Active += b.Size
		s.Requested += b.Requested
		if b.State == ActiveAllocated {
			s.Allocated += b.Size
		}
	}
}

func (m *machine) device(ordinal int) *Device {
	i, ok := slices.BinarySearchFunc(m.s.Devices, ordinal, func(d Device, o int) int { return cmp.Compare(d.Ordinal, o) })
	if !ok {
		m.s.Devices = slices.Insert(m.s.Devices, i, Device{Ordinal: ordinal})
	}
	return &m.s.Devices[i]
}

// addTraces adds the histories, one list for each device.
func (m *machine) addTraces(v value) error {
	const part, want = "device_traces", "a list of entries for each device"
	if v.absent() {
		return nil
	}
	if v.kind != isList {
		return m.errPart(part, v, want)
	}
	items := m.nodes.ref(v.x).items
	if len(items) > maxDevice {
		return m.errorf("%s of %d devices, want at most %d", part, len(items), maxDevice)
	}
	for ordinal, v := range items {
		switch {
		case v.absent():
		case v.kind == isHistory:
			hist := m.histories[v.x]
			if hist == nil {
				return m.errorf("device_traces shares one list of entries between devices, want a list each")
			}
			m.device(ordinal).History, m.histories[v.x] = *hist, nil
		default:
			return m.errPart(part+" of device "+strconv.Itoa(ordinal), v, "entries")
		}
	}
	return nil
}

func (m *machine) addAnnotations(v value) error {
	if v.absent() {
		return nil
	}
	if v.kind != isAnnotations {
		return m.errPart("external_annotations", v, "annotations")
	}
	m.s.Annotations = m.annotations.rows(m.runs[v.x])
	return nil
}

// maxSettings is the maximum number of settings. PyTorch has about a dozen.
const maxSettings = 1 << 10

// maxPrinted bounds the printed text of settings that are containers. A container may hold another
// one many times, so the text could grow without bound.
const maxPrinted = 1 << 16

func (m *machine) addSettings(v value) error {
	if v.absent() {
		return nil
	}
	if v.kind != isDict {
		return m.errPart("allocator_settings", v, "a dictionary")
	}
	nd := m.nodes.ref(v.x)
	if n := len(nd.items) / 2; n > maxSettings {
		return m.errorf("allocator_settings of %d keys, want at most %d", n, maxSettings)
	}
	for i := 0; i < len(nd.items); i += 2 {
		key, v := nd.items[i], nd.items[i+1]
		set := Setting{Text: v.kind == isText}
		var ok bool
		set.Key, ok = m.plain(key)
		if ok && set.Text {
			set.Value, ok = m.plain(v)
		} else if ok {
			set.Value, ok = m.printed(v)
		}
		switch at := slices.IndexFunc(m.s.Settings, func(o Setting) bool { return o.Key == set.Key }); {
		case !ok:
			m.ignore(settingsRow, key)
		case at >= 0:
			m.s.Settings[at] = set // Python keeps the last value of a key, too
		default:
			m.s.Settings = append(m.s.Settings, set)
		}
	}
	return nil
}
