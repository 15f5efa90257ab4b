package index

import (
	"math/bits"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
)

func TestBytesMatchTheTypeSizes(t *testing.T) {
	if n := reflect.TypeFor[sizeNode]().Size(); n != 32 {
		t.Errorf("a node takes %d bytes, want 32", n)
	}
	if n := reflect.TypeFor[dir]().Size(); n != 72 {
		t.Errorf("a directory takes %d bytes, want 72", n)
	}
}

// TestClassesAscendWithSizes walks the classes of every unit up to the last: each begins where
// the one before ends, and the last has a bit.
func TestClassesAscendWithSizes(t *testing.T) {
	for unit := range 31 {
		m := NewSizeMap(1 << unit)
		class := uint32(0)
		for size := device.Size(0); ; class++ {
			width := device.Size(1) << m.widthOf(class)
			if got := m.classOf(size); got != class || m.classOf(size+width-1) != class {
				t.Fatalf("unit 2^%d: sizes %d to %d of class %d, want %d", unit, size, size+width-1, got, class)
			}
			if size += width; size == 0 {
				break
			}
		}
		if class>>wordBits >= mostWords {
			t.Errorf("unit 2^%d: class %d lies beyond the last word", unit, class)
		}
	}
}

// populated returns a map with a class of many sizes, one of two, and a size of many entries.
func populated(t *testing.T) *SizeMap {
	t.Helper()
	m := NewSizeMap(1)
	for i := range 100 {
		m.Insert(1<<40+device.Size(i), device.Addr(i), uint32(i))
		m.Insert(7, device.Addr(1000-i), uint32(1000-i))
	}
	m.Insert(1<<30, 0, 2000)
	m.Insert(1<<30+1, 0, 2001)
	m.Remove(m.Insert(9, 9, 9), 9)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return &m
}

// TestCheckNamesWhatIsBroken plants one fault at a time.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	root := func(m *SizeMap, size device.Size) *sizeNode { return &m.nodes[m.Ceil(size)] }
	dirOf := func(m *SizeMap) *dir {
		d := &m.dirs[m.cells[m.classOf(1<<40)-m.base]&^dirBit]
		for d.cells[0]&dirBit != 0 {
			d = &m.dirs[d.cells[0]&^dirBit]
		}
		return d
	}
	for name, c := range map[string]struct {
		spoil func(*SizeMap)
		want  string
	}{
		"heap order":       {func(m *SizeMap) { root(m, 7).addr = 5000 }, "M1"},
		"size in a group":  {func(m *SizeMap) { m.nodes[root(m, 7).child].size = 8 }, "M1"},
		"link back":        {func(m *SizeMap) { m.nodes[root(m, 7).child].prev++ }, "M1"},
		"members":          {func(m *SizeMap) { root(m, 7).prev++ }, "M1"},
		"no root":          {func(m *SizeMap) { root(m, 1<<30).prev = 1 }, "M1"},
		"wrong class":      {func(m *SizeMap) { root(m, 1<<30).size = 1 << 20 }, "M2"},
		"no class at all":  {func(m *SizeMap) { root(m, 1<<30).size = 1 << 60 }, "M2"},
		"order in a cell":  {func(m *SizeMap) { root(m, 1<<30).size += 2 }, "M2"},
		"wrong digit":      {func(m *SizeMap) { root(m, 1<<40).size += 16 }, "M2"},
		"bit of a class":   {func(m *SizeMap) { m.words[0] |= 1 }, "M3"},
		"no bit":           {func(m *SizeMap) { m.words[0] = 0; m.sums[0] &^= 1 }, "M3"},
		"sum":              {func(m *SizeMap) { m.sums[0] &^= 1 }, "M3"},
		"bit of a digit":   {func(m *SizeMap) { d := dirOf(m); d.used &= d.used - 1 }, "M3"},
		"shift":            {func(m *SizeMap) { dirOf(m).shift++ }, "M4"},
		"unused directory": {func(m *SizeMap) { *dirOf(m) = dir{shift: dirOf(m).shift} }, "M4"},
		"lost directory":   {func(m *SizeMap) { m.dirs = append(m.dirs, dir{}) }, "M4"},
		"no directory":     {func(m *SizeMap) { dirOf(m).cells[0] = dirBit | 1<<20 }, "M4"},
		"length":           {func(m *SizeMap) { m.n++ }, "M5"},
		"lost node":        {func(m *SizeMap) { m.spare = NoEntry }, "M5"},
		"entry spare":      {func(m *SizeMap) { m.nodes[m.spare].handle = 1 }, "M5"},
		"spare entry":      {func(m *SizeMap) { root(m, 7).handle = spareHandle }, "M5"},
		"no node":          {func(m *SizeMap) { root(m, 1<<30).next = 1 << 20 }, "M5"},
	} {
		t.Run(name, func(t *testing.T) {
			m := populated(t)
			c.spoil(m)
			err := m.Check()
			if err == nil || !strings.HasPrefix(err.Error(), "sizemap: invariant "+c.want+" (") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// inUse returns how many directories are.
func (m *SizeMap) inUse() (n int) {
	for i := range m.dirs {
		if m.dirs[i].used != 0 {
			n++
		}
	}
	return n
}

// TestDirectoriesComeWithCrowdsAndGoWithThem crosses the edge again and again: a directory is
// not made and unmade each time.
func TestDirectoriesComeWithCrowdsAndGoWithThem(t *testing.T) {
	m := NewSizeMap(1)
	var at [mostRoots + 1]SizeAt
	insert := func(i int) { at[i] = m.Insert(1<<20+device.Size(i), device.Addr(i), uint32(i)) }
	remove := func(i int) { m.Remove(at[i], uint32(i)) }
	for i := range at {
		if m.inUse() != 0 {
			t.Fatalf("a directory for %d sizes", i)
		}
		insert(i)
	}
	dirs := m.inUse()
	if dirs == 0 {
		t.Fatalf("no directory for %d sizes", len(at))
	}
	for range 3 {
		for i := range mostRoots {
			remove(i)
		}
		if m.inUse() == 0 {
			t.Fatal("one size keeps no directory")
		}
		for i := range mostRoots {
			insert(i)
		}
		if err := m.Check(); err != nil || m.inUse() != dirs {
			t.Fatalf("%d directories, had %d; %v", m.inUse(), dirs, err)
		}
	}
	for i := range at {
		remove(i)
	}
	if err := m.Check(); err != nil || m.inUse() != 0 {
		t.Fatalf("%d directories for nothing; %v", m.inUse(), err)
	}
}

// TestPathsAreShort plants as many sizes as it takes to make a class deep, and counts the
// directories above each.
func TestPathsAreShort(t *testing.T) {
	m := NewSizeMap(1)
	for i := range 64 {
		for j := range device.Size(mostRoots + 2) {
			m.Insert(1<<63+1<<i>>1+j, device.Addr(8*i)+device.Addr(j), uint32(8*i)+uint32(j))
		}
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	deepest := 0
	for i := range m.nodes {
		size, depth := m.nodes[i].size, 0
		if i == 0 {
			continue // no entry
		}
		for cell := m.cells[m.classOf(size)-m.base]; cell&dirBit != 0; depth++ {
			d := &m.dirs[cell&^dirBit]
			cell = d.cells[d.digit(size)]
		}
		deepest = max(deepest, depth)
	}
	if most := (64 - fineBits + digitBits - 1) / digitBits; deepest > most {
		t.Errorf("%d directories above a size, at most %d are needed", deepest, most)
	}
}

// TestHeapsStaySound takes the lowest of many of one size, again and again, and counts how many
// lie directly below it: after the first time, few.
func TestHeapsStaySound(t *testing.T) {
	const n = 1 << 14
	m := NewSizeMap(256)
	rng := rand.New(rand.NewPCG(1, 1))
	for i, a := range rng.Perm(n) {
		m.Insert(256, device.Addr(a), uint32(i))
	}
	steps := 0
	for range n / 2 {
		root := m.Ceil(0)
		for c := m.nodes[root].child; c != NoEntry; c = m.nodes[c].next {
			steps++
		}
		m.Remove(root, m.nodes[root].handle)
	}
	if most := n + n/2*2*bits.Len(n); steps > most {
		t.Errorf("%d steps for %d removals, at most %d are expected", steps, n/2, most)
	}
}
