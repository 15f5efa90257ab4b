package torch

import "strconv"

// search is a walk through all containers of a file.
type search struct {
	way          []turn  // from the root to where it is
	whole, lists []found // snapshots and lists of segments: the first two of each
}

// turn is a container and the place in it where the way goes on.
type turn struct {
	node  *node
	index int
}

// found is a value and the keys that lead to it.
type found struct {
	v    value
	path string
}

// find returns the dictionary that is the snapshot, or a list of segments if there is none. It may
// be wrapped in other containers. Each of them is looked at once.
func (m *machine) find(root value) (value, error) {
	var s search
	m.look(root, &s)
	all := s.whole
	if len(all) == 0 {
		all = s.lists
	}
	switch {
	case len(all) == 1:
		return all[0].v, nil
	case len(all) > 1:
		return value{}, m.errorf("snapshots in %s, %s and perhaps more places, want one", all[0].path, all[1].path)
	case root.kind == isEmpty:
		return root, nil
	}
	return value{}, m.errorf("%s%s, want the dictionary of a snapshot, or a list of segments", m.describe(root),
		m.keyList(root))
}

// look looks for snapshots in a value. It is called at most maxNesting deep.
func (m *machine) look(v value, s *search) {
	if v.kind == isSegments {
		if len(s.lists) == 0 || len(s.lists) == 1 && s.lists[0].v != v {
			s.lists = append(s.lists, found{v, m.path(s.way)})
		}
		return
	}
	if v.kind != isList && v.kind != isDict {
		return
	}
	nd := m.nodes.ref(v.x)
	if nd.seen {
		return
	}
	nd.seen = true
	step := 1
	if nd.dict {
		step = 2
		if m.keys(nd).kindOf() == snapshotRow {
			if len(s.whole) < 2 {
				s.whole = append(s.whole, found{v, m.path(s.way)})
			}
			return
		}
	}
	for i := step - 1; i < len(nd.items); i += step {
		s.way = append(s.way, turn{nd, i})
		m.look(nd.items[i], s)
		s.way = s.way[:len(s.way)-1]
	}
}

// path returns the keys of a way, for messages.
func (m *machine) path(way []turn) string {
	b := []byte("the file")
	for _, t := range way {
		key := strconv.Itoa(t.index)
		if t.node.dict {
			key = m.keyText(t.node.items[t.index-1])
		}
		b = append(append(append(b, '['), key...), ']')
	}
	return string(b)
}
