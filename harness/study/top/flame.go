package top

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Node is a box of a flame graph: the memory of all stacks with the same outer lines.
type Node struct {
	Name     string      // line
	Bytes    device.Size // of all stacks through it
	Blocks   int         // of all stacks through it
	Category Category    // of most of its bytes
	Below    []*Node     // inner lines, largest first

	shares map[Category]device.Size
	named  map[string]*Node
}

// leastShare is the inverse of the least share of all bytes that gets a box: half a point in a
// picture of 250 points.
const leastShare = 500

// Flame returns the stacks as a tree, outermost lines first. Boxes too small to see are joined.
func (m *Moment) Flame() *Node {
	root := &Node{Name: "all live blocks"}
	for i := range m.Stacks {
		s := &m.Stacks[i]
		n := root
		n.add(s)
		for _, line := range slices.Backward(s.Lines) {
			n = n.child(line)
			n.add(s)
		}
	}
	root.settle(m.Bytes / leastShare)
	return root
}

func (n *Node) child(line string) *Node {
	below := n.named[line]
	if below == nil {
		if below = (&Node{Name: line}); n.named == nil {
			n.named = map[string]*Node{}
		}
		n.named[line] = below
		n.Below = append(n.Below, below)
	}
	return below
}

func (n *Node) add(s *Stack) {
	if n.shares == nil {
		n.shares = map[Category]device.Size{}
	}
	n.Bytes += s.Bytes
	n.Blocks += s.Blocks
	n.shares[s.Category] += s.Bytes
}

// settle sorts the children of a box, joins those smaller than least, and sets its category.
func (n *Node) settle(least device.Size) {
	for _, c := range Categories {
		if n.Category == "" || n.shares[c] > n.shares[n.Category] {
			n.Category = c
		}
	}
	slices.SortFunc(n.Below, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	first := slices.IndexFunc(n.Below, func(b *Node) bool { return b.Bytes < least })
	if first >= 0 && len(n.Below)-first > 1 {
		rest := &Node{Name: fmt.Sprintf("%d smaller", len(n.Below)-first), shares: map[Category]device.Size{}}
		for _, b := range n.Below[first:] {
			rest.Bytes += b.Bytes
			rest.Blocks += b.Blocks
			for c, bytes := range b.shares {
				rest.shares[c] += bytes
			}
		}
		n.Below = append(n.Below[:first], rest)
	}
	for _, b := range n.Below {
		b.settle(least)
	}
	n.shares, n.named = nil, nil
}
