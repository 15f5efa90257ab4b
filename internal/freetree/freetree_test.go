package freetree_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/freetree"
)

var seed = flag.Uint64("freetree.seed", 1, "first seed of the random tests")

// oracle is the obviously right ordered set: a sorted slice.
type oracle []freetree.Entry

func order(e, f freetree.Entry) int {
	return cmp.Or(cmp.Compare(e.Size, f.Size), cmp.Compare(e.Addr, f.Addr))
}

func (o *oracle) insert(e freetree.Entry) bool {
	i, found := slices.BinarySearchFunc(*o, e, order)
	if !found {
		*o = slices.Insert(*o, i, e)
	}
	return !found
}

func (o *oracle) remove(i int) freetree.Entry {
	e := (*o)[i]
	*o = slices.Delete(*o, i, i+1)
	return e
}

func (o oracle) ceil(size device.Size) int {
	i, _ := slices.BinarySearchFunc(o, freetree.Entry{Size: size}, order)
	return i
}

// profile is a way to draw keys: few sizes make ties, many make a wide tree.
type profile struct {
	name       string
	sizes      uint64
	addrs      uint64
	population int
	ops        int
}

var profiles = []profile{
	{"one leaf", 50, 50, 20, 4000},
	{"ties of size", 3, 1 << 20, 3000, 30000},
	{"one size", 1, 1 << 20, 1500, 20000},
	{"few ties", 1 << 20, 8, 3000, 30000},
	{"three levels", 1 << 30, 1 << 30, 30000, 120000},
}

func TestTreeAgreesWithSortedSlice(t *testing.T) {
	for _, p := range profiles {
		for s := *seed; s < *seed+4; s++ {
			t.Run(fmt.Sprintf("%s/seed=%d", p.name, s), func(t *testing.T) { compareWithOracle(t, p, s) })
		}
	}
}

// compareWithOracle grows and drains a tree in waves, so that nodes split, share and merge
// on every level.
func compareWithOracle(t *testing.T, p profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var tree freetree.Tree
	var want oracle
	for op := range p.ops {
		growing := op/(2*p.population)%2 == 0
		switch k := rng.IntN(10); {
		case k < 6 == growing && len(want) < p.population:
			e := freetree.Entry{
				Size:   device.Size(rng.Uint64N(p.sizes)),
				Addr:   device.Addr(rng.Uint64N(p.addrs)),
				Handle: uint32(op),
			}
			if want.insert(e) {
				tree.Insert(e)
			}
		case k%2 == 0 && len(want) > 0:
			e := want.remove(rng.IntN(len(want)))
			if h, ok := tree.Delete(e.Size, e.Addr); !ok || h != e.Handle {
				t.Fatalf("op %d: Delete(%v) = %d, %v", op, e, h, ok)
			}
		default:
			takeCeil(t, &tree, &want, device.Size(rng.Uint64N(p.sizes+1)))
		}
		if tree.Len() != len(want) {
			t.Fatalf("op %d: Len %d, want %d", op, tree.Len(), len(want))
		}
		if op%997 == 0 {
			mustEqual(t, &tree, want, device.Size(rng.Uint64N(p.sizes+1)))
		}
	}
	mustEqual(t, &tree, want, 0)
	for len(want) > 0 {
		takeCeil(t, &tree, &want, 0)
	}
	mustEqual(t, &tree, want, 0)
}

// takeCeil takes from both and compares.
func takeCeil(t *testing.T, tree *freetree.Tree, want *oracle, size device.Size) {
	t.Helper()
	i := want.ceil(size)
	h, ok := tree.TakeCeil(size)
	if ok != (i < len(*want)) {
		t.Fatalf("TakeCeil(%d): %v with %d of %d below", size, ok, i, len(*want))
	}
	if ok {
		if e := want.remove(i); e.Handle != h {
			t.Fatalf("TakeCeil(%d) = %d, want %v", size, h, e)
		}
	}
}

// mustEqual compares everything that can be read, and the invariants.
func mustEqual(t *testing.T, tree *freetree.Tree, want oracle, from device.Size) {
	t.Helper()
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(tree.All); !slices.Equal(got, want) {
		t.Fatalf("All yields %d entries that differ from the %d wanted", len(got), len(want))
	}
	i := want.ceil(from)
	for c := tree.Seek(from); ; c = tree.Next(c) {
		e, ok := tree.At(c)
		if ok != (i < len(want)) || ok && e != want[i] {
			t.Fatalf("cursor from %d: %v %v at %d", from, e, ok, i)
		}
		if !ok {
			break
		}
		i++
	}
	top, ok := tree.Max()
	if ok != (len(want) > 0) || ok && top != want[len(want)-1] {
		t.Fatalf("Max = %v %v", top, ok)
	}
	e, ok := tree.Ceil(from)
	if j := want.ceil(from); ok != (j < len(want)) || ok && e != want[j] {
		t.Fatalf("Ceil(%d) = %v %v", from, e, ok)
	}
}

func TestDeleteOfAbsentKeyChangesNothing(t *testing.T) {
	var tree freetree.Tree
	if _, ok := tree.Delete(1, 1); ok {
		t.Error("deleted from the empty tree")
	}
	for i := range 500 {
		tree.Insert(freetree.Entry{Size: 256 * device.Size(i), Addr: device.Addr(i)})
	}
	for _, k := range []struct {
		size device.Size
		addr device.Addr
	}{{0, 1}, {256, 0}, {256, 2}, {255, 1}, {256 * 500, 500}} {
		if _, ok := tree.Delete(k.size, k.addr); ok {
			t.Errorf("deleted (%d, %d), which is not there", k.size, k.addr)
		}
	}
	if tree.Len() != 500 {
		t.Errorf("Len %d", tree.Len())
	}
}

func TestExtremeKeysAreOrdinary(t *testing.T) {
	var tree freetree.Tree
	top := freetree.Entry{Size: ^device.Size(0), Addr: ^device.Addr(0), Handle: ^uint32(0)}
	tree.Insert(top)
	tree.Insert(freetree.Entry{})
	if e, ok := tree.Ceil(1); !ok || e != top {
		t.Errorf("Ceil(1) = %v %v", e, ok)
	}
	if e, ok := tree.Ceil(0); !ok || e != (freetree.Entry{}) {
		t.Errorf("Ceil(0) = %v %v", e, ok)
	}
}

func TestClearKeepsTheRoom(t *testing.T) {
	var tree freetree.Tree
	fill := func() {
		for i := range 5000 {
			tree.Insert(freetree.Entry{Size: device.Size(i)})
		}
	}
	fill()
	bytes := tree.Bytes()
	tree.Clear()
	if _, ok := tree.Max(); ok || tree.Len() != 0 {
		t.Error("not empty after Clear")
	}
	if n := testing.AllocsPerRun(5, func() { fill(); tree.Clear() }); n != 0 || tree.Bytes() != bytes {
		t.Errorf("%v allocations and %d bytes after Clear, had %d", n, tree.Bytes(), bytes)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 2))
	var tree freetree.Tree
	for i := range 20000 {
		tree.Insert(freetree.Entry{Size: device.Size(rng.Uint64N(1 << 20)), Addr: device.Addr(i), Handle: uint32(i)})
	}
	replace := func() {
		h, ok := tree.TakeCeil(device.Size(rng.Uint64N(1 << 20)))
		if !ok {
			h, _ = tree.TakeCeil(0)
		}
		tree.Insert(freetree.Entry{Size: device.Size(rng.Uint64N(1 << 20)), Addr: device.Addr(h), Handle: h})
	}
	for range 100000 {
		replace()
	}
	if n := testing.AllocsPerRun(20000, replace); n != 0 {
		t.Errorf("%v allocations for each replacement", n)
	}
}

// TestSpaceFollowsThePopulation plants the pattern that ruins trees which free only empty
// nodes: fill, thin out to a few keys a node, fill elsewhere.
func TestSpaceFollowsThePopulation(t *testing.T) {
	var tree freetree.Tree
	for round := range 20 {
		for i := range 4096 {
			tree.Insert(freetree.Entry{Size: device.Size(round), Addr: device.Addr(i)})
		}
		for i := range 4096 {
			if i%64 != 0 {
				tree.Delete(device.Size(round), device.Addr(i))
			}
		}
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if tree.Len() != 20*64 || tree.Bytes() > 1<<20 {
		t.Errorf("%d entries take %d bytes", tree.Len(), tree.Bytes())
	}
}

func BenchmarkReplace(b *testing.B) {
	for _, n := range []int{1e2, 1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(*seed, 3))
			var tree freetree.Tree
			for i := range n {
				tree.Insert(freetree.Entry{Size: device.Size(rng.Uint64N(1 << 40)), Addr: device.Addr(i), Handle: uint32(i)})
			}
			b.ResetTimer()
			for range b.N {
				h, ok := tree.TakeCeil(device.Size(rng.Uint64N(1 << 40)))
				if ok {
					tree.Insert(freetree.Entry{Size: device.Size(rng.Uint64N(1 << 40)), Addr: device.Addr(h), Handle: h})
				}
			}
			b.ReportMetric(float64(tree.Bytes())/float64(n), "B/entry")
		})
	}
}

func BenchmarkCeil(b *testing.B) {
	for _, n := range []int{1e3, 1e6} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(*seed, 4))
			var tree freetree.Tree
			for i := range n {
				tree.Insert(freetree.Entry{Size: device.Size(rng.Uint64N(1 << 40)), Addr: device.Addr(i)})
			}
			b.ResetTimer()
			for range b.N {
				tree.Ceil(device.Size(rng.Uint64N(1 << 40)))
			}
		})
	}
}

// FuzzTree decodes bytes to calls: a kind, a size and an address each.
func FuzzTree(f *testing.F) {
	f.Add([]byte{0, 1, 1, 0, 1, 2, 0, 1, 3, 1, 1, 2, 2, 1, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var tree freetree.Tree
		var want oracle
		for ; len(ops) >= 3; ops = ops[3:] {
			e := freetree.Entry{Size: device.Size(ops[1]), Addr: device.Addr(ops[2]), Handle: uint32(len(ops))}
			switch ops[0] % 3 {
			case 0:
				if want.insert(e) {
					tree.Insert(e)
				}
			case 1:
				i, found := slices.BinarySearchFunc(want, e, order)
				if _, ok := tree.Delete(e.Size, e.Addr); ok != found {
					t.Fatalf("Delete(%v) = %v", e, ok)
				}
				if found {
					want.remove(i)
				}
			case 2:
				takeCeil(t, &tree, &want, e.Size)
			}
		}
		mustEqual(t, &tree, want, 0)
	})
}

// TestTakeNearTakesTheLowestOfAFew compares with the definition, over trees whose leaves are
// crossed by most searches.
func TestTakeNearTakesTheLowestOfAFew(t *testing.T) {
	for s := *seed; s < *seed+4; s++ {
		rng := rand.New(rand.NewPCG(s, 2))
		var tree freetree.Tree
		var want oracle
		for op := range 20_000 {
			if len(want) < 300 || rng.IntN(2) == 0 && len(want) < 3000 {
				e := freetree.Entry{Size: device.Size(rng.Uint64N(500)), Addr: device.Addr(rng.Uint64()), Handle: uint32(op)}
				if want.insert(e) {
					tree.Insert(e)
				}
				continue
			}
			size, spread, looks := device.Size(rng.Uint64N(520)), device.Size(rng.Uint64N(40)), 1+rng.IntN(100)
			i := want.ceil(size)
			best := i
			for j := i; j < min(i+looks, len(want)) && want[j].Size <= want[i].Size+spread; j++ {
				if want[j].Addr < want[best].Addr {
					best = j
				}
			}
			h, ok := tree.TakeNear(size, spread, looks)
			if ok != (i < len(want)) || ok && h != want.remove(best).Handle {
				t.Fatalf("seed %d, op %d: TakeNear(%d, %d, %d) = %d, %v", s, op, size, spread, looks, h, ok)
			}
		}
		mustEqual(t, &tree, want, 0)
	}
}
