package tiles_test

import (
	"fmt"

	"github.com/vramyard/vramyard/kit/tiles"
)

// A table cuts a region into chunks that know their neighbors, so that a freed chunk merges without
// a search.
func ExampleTable() {
	t := tiles.NewTable()
	low := t.Add(0x10000, 4096)
	high := t.Split(low, 1024)
	for h := low; h != tiles.None; h = t.Rows[h].Next {
		fmt.Println(t.AddrOf(h), t.Rows[h].Size)
	}

	prev, next := t.FreeNeighbors(high)
	whole := t.Join(prev, high, next)
	fmt.Println("merged:", t.AddrOf(whole), t.Rows[whole].Size, t.Fills(whole))
	// Output:
	// 0x10000 1KiB
	// 0x10400 3KiB
	// merged: 0x10000 4KiB true
}
