package torch

import "strconv"

// search is a depth-first search of the containers of a file for snapshots.
type search struct {
	path             []pathStep // path from the root to the current container
	snapshots, lists []found    // the first two snapshots and the first two lists of segments
}

// pathStep is a step of a path: a container and an index in it.
type pathStep struct {
	node  *node
	index int
}

// found is a value and the keys that lead to it.
type found struct {
	v    value
	path string
}

// find returns the dictionary of the snapshot, or a list of segments if there is no dictionary.
// Either may be nested in other containers, each of which is visited once.
func (m *machine) find(root value) (value, error) {
	var s search
	m.visit(root, &s)
	all := s.snapshots
	if len(all) == 0 {
		all = s.lists
	}
	switch {
	case len(all) == 1:
		return all[0].v, nil
	case len(all) > 1:
		return value{}, m.errorf("at least two snapshots, in %s and %s, want one", all[0].path, all[1].path)
	case root.kind == isEmpty:
		return root, nil
	}
	return value{}, m.errorf("%s%s, want the dictionary of a snapshot, or a list of segments", m.describe(root),
		m.keyList(root))
}

// visit searches a value for snapshots. The recursion is at most maxNesting deep.
func (m *machine) visit(v value, s *search) {
	if v.kind == isSegments {
		if len(s.lists) == 0 || len(s.lists) == 1 && s.lists[0].v != v {
			s.lists = append(s.lists, found{v, m.path(s.path)})
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
			if len(s.snapshots) < 2 {
				s.snapshots = append(s.snapshots, found{v, m.path(s.path)})
			}
			return
		}
	}
	for i := step - 1; i < len(nd.items); i += step {
		s.path = append(s.path, pathStep{nd, i})
		m.visit(nd.items[i], s)
		s.path = s.path[:len(s.path)-1]
	}
}

// path formats a path for error messages.
func (m *machine) path(path []pathStep) string {
	b := []byte("the file")
	for _, t := range path {
		key := strconv.Itoa(t.index)
		if t.node.dict {
			key = m.keyText(t.node.items[t.index-1])
		}
		b = append(append(append(b, '['), key...), ']')
	}
	return string(b)
}
