package index_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

var seed = flag.Uint64("sizemap.seed", 1, "first seed of the random tests")

// oracle is the obviously right ordered set: a sorted slice. The names of its entries in the
// map under test are beside it.
type oracle struct {
	entries []index.SizeEntry
	names   map[uint32]index.SizeAt // by handle
}

func order(e, f index.SizeEntry) int {
	return cmp.Or(cmp.Compare(e.Size, f.Size), cmp.Compare(e.Addr, f.Addr))
}

func (o *oracle) ceil(size device.Size) int {
	i, _ := slices.BinarySearchFunc(o.entries, index.SizeEntry{Size: size}, order)
	return i
}

// pair is a map and its oracle.
type pair struct {
	t    testing.TB
	m    index.SizeMap
	want oracle
	used map[device.Addr]bool
}

func newPair(t testing.TB, unit device.Size) *pair {
	return &pair{t: t, m: index.NewSizeMap(unit), want: oracle{names: map[uint32]index.SizeAt{}},
		used: map[device.Addr]bool{}}
}

// insert adds an entry to both, unless its address or handle is taken.
func (p *pair) insert(e index.SizeEntry) {
	if _, taken := p.want.names[e.Handle]; taken || p.used[e.Addr] {
		return
	}
	i, _ := slices.BinarySearchFunc(p.want.entries, e, order)
	p.want.entries = slices.Insert(p.want.entries, i, e)
	p.want.names[e.Handle] = p.m.Insert(e.Size, e.Addr, e.Handle)
	p.used[e.Addr] = true
}

// remove removes entry i of the order from both.
func (p *pair) remove(i int) {
	p.t.Helper()
	e := p.want.entries[i]
	at := p.want.names[e.Handle]
	if got := p.m.Entry(at); got != e {
		p.t.Fatalf("entry %d is %v, want %v", at, got, e)
	}
	if p.m.Remove(at, e.Handle+1) || !p.m.Remove(at, e.Handle) || p.m.Remove(at, e.Handle) {
		p.t.Fatalf("Remove(%v) took a wrong handle, not the right one, or the right one twice", e)
	}
	p.want.entries = slices.Delete(p.want.entries, i, i+1)
	delete(p.want.names, e.Handle)
	delete(p.used, e.Addr)
}

// is compares a name that the map returned with entry i of the order, which may be past the end.
func (p *pair) is(at index.SizeAt, i int, format string, args ...any) {
	p.t.Helper()
	switch {
	case i == len(p.want.entries):
		if at == index.NoEntry {
			return
		}
	case at != index.NoEntry && p.m.Entry(at) == p.want.entries[i]:
		return
	}
	p.t.Fatalf("%s: got %d, want number %d of %d", fmt.Sprintf(format, args...), at, i, len(p.want.entries))
}

// search asks all the questions about a size and compares the answers with their definitions.
func (p *pair) search(size, spread device.Size, looks int, odd uint32) (first int) {
	p.t.Helper()
	want := p.want.entries
	first = p.want.ceil(size)
	p.is(p.m.Ceil(size), first, "Ceil(%d)", size)
	best := first
	for j := first; j < min(first+looks, len(want)) && want[j].Size <= want[first].Size+spread; j++ {
		if want[j].Addr < want[best].Addr {
			best = j
		}
	}
	p.is(p.m.Near(size, spread, looks), best, "Near(%d, %d, %d)", size, spread, looks)
	fits := func(handle uint32) bool { return handle%3 == odd }
	i := first
	for i < len(want) && !fits(want[i].Handle) {
		i++
	}
	p.is(p.m.First(size, fits), i, "First(%d)", size)
	return first
}

// check compares everything that can be read, and the invariants.
func (p *pair) check(from device.Size) {
	p.t.Helper()
	if err := p.m.Check(); err != nil {
		p.t.Fatal(err)
	}
	if got := slices.Collect(p.m.All); !slices.Equal(got, p.want.entries) || p.m.Len() != len(got) {
		p.t.Fatalf("All yields %d entries of %d that differ from the %d wanted", len(got), p.m.Len(), len(p.want.entries))
	}
	got := p.m.AppendTo(nil)
	slices.SortFunc(got, order)
	if !slices.Equal(got, p.want.entries) {
		p.t.Fatalf("AppendTo appends %d entries that differ from the %d wanted", len(got), len(p.want.entries))
	}
	if got := slices.Collect(p.m.From(from)); !slices.Equal(got, p.want.entries[p.want.ceil(from):]) {
		p.t.Fatalf("From(%d) yields %d entries", from, len(got))
	}
	largest := device.Size(0)
	if n := len(p.want.entries); n > 0 {
		largest = p.want.entries[n-1].Size
	}
	if got := p.m.Largest(); got != largest {
		p.t.Fatalf("Largest %d, want %d", got, largest)
	}
}

// profile is a way to draw keys.
type profile struct {
	name       string
	unit       device.Size
	size       func(*rand.Rand) device.Size
	population int
	ops        int
}

// below draws multiples of a unit, uniformly.
func below(n uint64, unit device.Size) func(*rand.Rand) device.Size {
	return func(rng *rand.Rand) device.Size { return device.Size(rng.Uint64N(n)) * unit }
}

// skewed draws from all octaves alike.
func skewed(rng *rand.Rand) device.Size { return device.Size(rng.Uint64() >> rng.UintN(64)) }

var profiles = []profile{
	{"few", 256, below(50, 256), 20, 4000},
	{"ties of size", 256, below(3, 256), 3000, 30000},
	{"one size", 1, below(1, 1), 1500, 20000},
	{"every octave", 1, skewed, 3000, 30000},
	{"no multiples of the unit", 4096, skewed, 3000, 30000},
	{"one class", 1, func(rng *rand.Rand) device.Size { return 1<<40 + device.Size(rng.Uint64N(1<<20)) }, 3000, 30000},
	{"pairs in one class", 1, func(rng *rand.Rand) device.Size {
		return 1<<50 + device.Size(rng.Uint64N(40))<<rng.UintN(20)
	}, 300, 30000},
	{"many", 256, below(1<<30, 256), 30000, 100000},
}

func TestMapAgreesWithSortedSlice(t *testing.T) {
	for _, p := range profiles {
		for s := *seed; s < *seed+3; s++ {
			t.Run(fmt.Sprintf("%s/seed=%d", p.name, s), func(t *testing.T) { compareWithOracle(t, p, s) })
		}
	}
}

// compareWithOracle grows and drains a map in waves.
func compareWithOracle(t *testing.T, prof profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := newPair(t, prof.unit)
	for op := range prof.ops {
		growing := op/(2*prof.population)%2 == 0
		n := len(p.want.entries)
		switch k := rng.IntN(10); {
		case k < 6 == growing && n < prof.population:
			p.insert(index.SizeEntry{Size: prof.size(rng), Addr: device.Addr(rng.Uint64N(1 << 20)), Handle: uint32(op)})
		case k%2 == 0 && n > 0:
			p.remove(rng.IntN(n))
		default:
			size := prof.size(rng)
			spread := min(prof.size(rng)>>rng.UintN(8), ^size)
			if i := p.search(size, spread, 1+rng.IntN(20), uint32(rng.IntN(4))); i < n {
				p.remove(i)
			}
		}
		if op%997 == 0 {
			p.check(prof.size(rng))
		}
	}
	for p.check(0); len(p.want.entries) > 0; {
		p.remove(p.search(0, 0, 1, 0))
	}
	p.check(0)
}

// FuzzMap decodes bytes to calls: a kind, a size of two parts and an address each.
func FuzzMap(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 0, 1, 0, 2, 0, 1, 1, 3, 1, 1, 0, 2, 2, 1, 0, 0})
	f.Add([]byte{0, 0, 9, 1, 0, 1, 9, 2, 0, 2, 9, 3, 0, 3, 9, 4, 0, 4, 9, 5, 1, 2, 9, 0, 2, 3, 9, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := newPair(t, 16)
		for ; len(ops) >= 4; ops = ops[4:] {
			size := device.Size(ops[1])<<(ops[2]%56) | 1<<(ops[2]/4)
			switch ops[0] % 3 {
			case 0:
				p.insert(index.SizeEntry{Size: size, Addr: device.Addr(ops[3]), Handle: uint32(len(ops))})
			case 1:
				if n := len(p.want.entries); n > 0 {
					p.remove(int(ops[3]) % n)
				}
			case 2:
				p.search(size, min(device.Size(ops[3])<<(ops[0]/3%56), ^size), 1+int(ops[0]/16), uint32(ops[3]%4))
			}
		}
		p.check(0)
	})
}

func TestExtremeKeysAreOrdinary(t *testing.T) {
	for _, unit := range []device.Size{1, 256, device.GiB} {
		p := newPair(t, unit)
		top := ^device.Size(0)
		p.insert(index.SizeEntry{Size: top, Addr: ^device.Addr(0), Handle: index.MostHandle})
		p.insert(index.SizeEntry{Size: top - 1, Addr: 5, Handle: 1})
		p.insert(index.SizeEntry{})
		for _, size := range []device.Size{0, 1, top - 2, top - 1, top} {
			for odd := range uint32(4) {
				p.search(size, 0, 9, odd)
			}
		}
		p.check(top)
	}
}

func TestRemoveOfNothingChangesNothing(t *testing.T) {
	m := index.NewSizeMap(256)
	if m.Remove(index.NoEntry, 0) || m.Remove(7, 0) {
		t.Error("removed from the empty map")
	}
	at := m.Insert(256, 0, 3)
	if m.Remove(index.NoEntry, 0) || m.Remove(at, 4) || m.Remove(at+1, 3) || m.Len() != 1 {
		t.Error("removed what is not there")
	}
	if m.Ceil(1<<50) != index.NoEntry || m.Near(1<<50, 0, 9) != index.NoEntry {
		t.Error("found beyond the last page")
	}
}

func TestSizemapSteadyStateAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 2))
	m := index.NewSizeMap(256)
	draw := func() device.Size { return device.Size(rng.Uint64N(1<<20)>>rng.UintN(12)) * 256 }
	for i := range 20000 {
		m.Insert(draw(), device.Addr(i), uint32(i))
	}
	never := func(uint32) bool { return false }
	replace := func() {
		at := m.Near(draw(), 1<<16, 8)
		if at == index.NoEntry {
			at = m.Ceil(0)
		}
		m.First(1<<27, never)
		h := m.Entry(at).Handle
		m.Remove(at, h)
		m.Insert(draw(), device.Addr(h), h)
	}
	for range 100000 {
		replace()
	}
	if n := testing.AllocsPerRun(20000, replace); n != 0 {
		t.Errorf("%v allocations for each replacement", n)
	}
}

// TestMisplacedEntryDoesNotMakeEachSearchLong has thousands of one size, of which only the lowest
// never fits, as with an alignment.
func TestMisplacedEntryDoesNotMakeEachSearchLong(t *testing.T) {
	const n = 10_000
	m := index.NewSizeMap(256)
	for i := range uint32(n) {
		m.Insert(4096, device.Addr(4096+8192*device.Size(i)), i)
	}
	looks := 0
	fits := func(h uint32) bool {
		looks++
		return h != 0
	}
	const searches = 100
	for range searches {
		at := m.First(4096, fits)
		h := m.Take(at)
		require.NotZero(t, h)
		m.Insert(4096, device.Addr(4096+8192*device.Size(h)), h)
	}
	require.LessOrEqual(t, looks, 4*searches)
	require.NoError(t, m.Check())
}
