package main

import (
	"cmp"
	"container/list"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// memory is a cache of the lines touched last, and what pairs touch of it.
type memory struct {
	recent *list.List               // line numbers, newest first
	where  map[uint64]*list.Element // of a line in recent
	pair   map[uint64]bool          // lines that this pair has touched

	counting                        bool
	pairs, instructions, odd, lines int
	far                             int
	places                          map[uint64]int // far lines first touched, by instruction
}

func newMemory() *memory {
	return &memory{recent: list.New(), where: map[uint64]*list.Element{}, pair: map[uint64]bool{},
		places: map[uint64]int{}}
}

// startCounting begins to count, once the near lines are known.
func (m *memory) startCounting() { m.counting = true }

func (m *memory) beginPair() {
	clear(m.pair)
	if m.counting {
		m.pairs++
	}
}

func (m *memory) instruction(unknown bool) {
	if !m.counting {
		return
	}
	m.instructions++
	if unknown {
		m.odd++
	}
}

// touch notes that the instruction at pc touches n bytes.
func (m *memory) touch(pc, at uint64, n int) {
	for line := at / lineBytes; line <= (at+uint64(n)-1)/lineBytes; line++ {
		near := m.use(line)
		if !m.counting || m.pair[line] {
			continue
		}
		m.pair[line] = true
		m.lines++
		if !near {
			m.far++
			m.places[pc]++
		}
	}
}

// use makes a line the newest and reports whether it was near.
func (m *memory) use(line uint64) bool {
	if e, ok := m.where[line]; ok {
		m.recent.MoveToFront(e)
		return true
	}
	m.where[line] = m.recent.PushFront(line)
	if m.recent.Len() > nearLines {
		oldest, ok := m.recent.Remove(m.recent.Back()).(uint64)
		if !ok {
			panic("memory: the list holds line numbers")
		}
		delete(m.where, oldest)
	}
	return false
}

func (m *memory) report(s *linesSeen) {
	mean := func(n int) float64 { return float64(n) / float64(max(m.pairs, 1)) }
	s.Instructions, s.Unknown, s.Lines, s.Far = mean(m.instructions), mean(m.odd), mean(m.lines), mean(m.far)
	sums := map[farFrom]int{}
	for pc, n := range m.places {
		sums[placeOf(pc)] += n
	}
	for _, p := range slices.Collect(maps.Keys(sums)) {
		n := sums[p]
		p.Far = mean(n)
		s.Places = append(s.Places, p)
	}
	slices.SortFunc(s.Places, func(a, b farFrom) int {
		return cmp.Or(cmp.Compare(b.Far, a.Far), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// module is the beginning of the names of all our functions.
const module = "github.com/vramyard/vramyard/"

// placeOf returns the line of the source of an instruction. The traced process is this program,
// so the addresses of its code are ours.
func placeOf(pc uint64) farFrom {
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(pc) + 1}).Next() // it takes return addresses
	p := farFrom{Function: frame.Function, File: path.Base(frame.File), Line: frame.Line}
	if name, ours := strings.CutPrefix(frame.Function, module); ours {
		room, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ".")
		p.Function = name
		p.File = path.Join(path.Dir(name[:strings.LastIndex(name, "/")+1]+room+"/x"), p.File)
	}
	return p
}
