package blocks

import (
	"math/bits"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

var families = []string{Binary, Weighted, Fibonacci, FourPerDoubling, EightPerDoubling}

func TestClassSizes(t *testing.T) {
	for family, want := range map[string][]uint32{
		Binary:           {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
		Weighted:         {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48},
		Fibonacci:        {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144},
		FourPerDoubling:  {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14},
		EightPerDoubling: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
	} {
		c := classesOf(family)
		require.Equal(t, want, c.size[:len(want)], family)
		require.Less(t, len(c.size), mostClasses, family)
		require.LessOrEqual(t, c.size[len(c.size)-1], uint32(mostUnits), family)
	}
}

func TestEveryClassSplitsIntoTwo(t *testing.T) {
	for _, family := range families {
		c := classesOf(family)
		for i := 1; i < len(c.size); i++ {
			right := c.size[c.right[i]]
			require.Equal(t, c.size[i], c.size[i-1]+right, "%s: class %d", family, i)
			require.LessOrEqual(t, right, c.size[i-1], "%s: class %d: the right part is no larger", family, i)
		}
	}
}

// TestClassOfSize compares the arithmetic with a search, on both sides of every boundary.
func TestClassOfSize(t *testing.T) {
	for _, family := range families {
		c := classesOf(family)
		for i, size := range c.size {
			for _, n := range []uint32{size - 1, size, size + 1} {
				if n == 0 || n > c.size[len(c.size)-1] {
					continue
				}
				want := sort.Search(len(c.size), func(k int) bool { return c.size[k] >= n })
				require.Equal(t, want, c.holding(n), "%s: %d units around class %d", family, n, i)
				if c.size[want] > n {
					want--
				}
				require.Equal(t, want, c.within(n), "%s: %d units around class %d", family, n, i)
			}
		}
	}
}

// below visits every block of the split tree below n, with parent and buddy.
func below(c *classes, n node, visit func(child, buddy, parent node)) {
	if n.class == 0 {
		return
	}
	left := node{n.at, n.class - 1}
	right := node{n.at + c.size[left.class], int(c.right[n.class])}
	visit(left, right, n)
	visit(right, left, n)
	below(c, left, visit)
	below(c, right, visit)
}

// TestWayLeadsToEveryBlock compares way with the split trees themselves, and the alignment
// that each class is said to have with where its blocks are.
func TestWayLeadsToEveryBlock(t *testing.T) {
	for _, family := range families {
		c := classesOf(family)
		for units := uint32(1); units < 150; units++ {
			end := uint32(0)
			for root := range func(yield func(node) bool) { c.cut(units, yield) } {
				require.Equal(t, end, root.at, "%s: roots of %d units leave no gap", family, units)
				end += c.size[root.class]
				require.Zero(t, root.at&(1<<c.log[root.class]-1))
				below(&c, root, func(child, buddy, parent node) {
					require.Equal(t, root, c.rootOf(units, child.at))
					require.Zero(t, child.at&(1<<c.log[child.class]-1), "%s: %d units: %v", family, units, child)
					var w way
					w.to(&c, root, child.at)
					gotBuddy, gotParent, ok := w.up(&c, child)
					require.True(t, ok)
					require.Equal(t, []node{buddy, parent}, []node{gotBuddy, gotParent}, "%s: %d units: %v", family, units, child)
				})
				var w way
				w.to(&c, root, root.at)
				_, _, ok := w.up(&c, root)
				require.False(t, ok, "a root has no buddy")
			}
			require.Equal(t, units, end, "%s: nothing is lost", family)
		}
	}
}

// TestBuddyByOneBit compares the arithmetic of halves with the general rule, far up.
func TestBuddyByOneBit(t *testing.T) {
	c := classesOf(Binary)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		units := uint32(1 + rng.Uint64N(mostUnits))
		class := rng.IntN(bits.Len32(units))
		at := uint32(rng.Uint64N(uint64(units))) &^ (1<<class - 1)
		root := c.rootOf(units, at)
		if class > root.class {
			continue
		}
		var w way
		w.to(&c, root, at)
		buddy, parent, ok := w.up(&c, node{at, class})
		require.Equal(t, class < root.class, ok)
		if ok {
			require.Equal(t, node{at ^ 1<<class, class}, buddy)
			require.Equal(t, node{at &^ (1 << class), class + 1}, parent)
		}
	}
}
