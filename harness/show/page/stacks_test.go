package page_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// calls are stacks by allocation: each is a list of functions, the innermost first.
type calls [][]string

// Stack implements page.Stacks.
func (c calls) Stack(id uint64) uint32 {
	if id >= uint64(len(c)) || c[id] == nil {
		return 0
	}
	return uint32(id) + 1
}

// Lines implements page.Stacks: each allocation has places of its own, and the outermost is the
// call site.
func (c calls) Lines(stack uint32) (lines []string, site string) {
	for i, function := range c[stack-1] {
		lines = append(lines, fmt.Sprintf("run%d.py:%d %s", stack, i, function))
	}
	return lines, lines[len(lines)-1]
}

// kept is the stack data of a page.
type kept struct {
	places  []string
	frames  []uint32
	starts  []uint32
	sites   []uint32
	leftOut int
	blocks  []uint32 // by rectangle
}

// keptOf reads the stacks of a page of one run.
func keptOf(t *testing.T, text string) kept {
	t.Helper()
	about, arrays := data(t, text)
	tr := about["traces"].([]any)[0].(map[string]any)
	stacks := tr["stacks"].(map[string]any)
	of := func(ref any) []byte {
		r := ref.(map[string]any)
		size := map[any]int{"u8": 1, "u32": 4}[r["t"]]
		at := int(r["o"].(float64))
		return arrays[at : at+size*int(r["n"].(float64))]
	}
	numbers := func(ref any) (list []uint32) {
		for b := range slices.Chunk(of(ref), 4) {
			list = append(list, binary.LittleEndian.Uint32(b))
		}
		return list
	}
	rects := tr["runs"].([]any)[0].(map[string]any)["map"].(map[string]any)["rects"].(map[string]any)
	return kept{
		strings.Split(string(of(stacks["places"])), "\n"), numbers(stacks["frames"]), numbers(stacks["starts"]),
		numbers(stacks["sites"]),
		int(stacks["left_out"].(float64)), numbers(rects["stack"]),
	}
}

// TestBlocksHaveTheirStacks checks blocks with a stack, without one, and with one that is too deep.
func TestBlocksHaveTheirStacks(t *testing.T) {
	r := reportOf(t, read(t, "a 0 1MiB\na 1 2MiB\na 2 3MiB\na 3 1KiB\n"), "bfc", 32*device.MiB)
	deep := make([]string, 1000)
	for i := range deep {
		deep[i] = fmt.Sprint("f", i)
	}
	r.Traces[0].Stacks = calls{{"inner", "<b>\n\u202eouter"}, nil, deep}
	k := keptOf(t, written(t, r))
	require.Equal(t, []uint32{3, 0, 2, 0}, k.blocks, "the first is of the heaviest")
	require.Zero(t, k.leftOut)
	require.Equal(t, []uint32{0, 65, 67}, k.starts)
	require.Equal(t, uint32(1<<32-1), k.frames[64])
	require.Equal(t, "run3.py:63 f63", k.places[k.frames[63]])
	require.Equal(t, []string{"run3.py:999 f999", "run1.py:0 inner", "run1.py:1 <b>\ufffd\ufffdouter"}, k.places[64:])
	require.Equal(t, []uint32{64, 66}, k.sites, "call sites are kept of stacks that are cut, too")
}

// TestStacksHaveABudget gives every block a stack of its own.
func TestStacksHaveABudget(t *testing.T) {
	var text strings.Builder
	list := make(calls, 1000)
	for i := range list {
		fmt.Fprintf(&text, "a %d %dKiB\n", i, 1000-i)
		list[i] = []string{strings.Repeat("x", 300), fmt.Sprint(i)}
	}
	huge := strings.Repeat("y", 1<<20)
	list[0] = slices.Repeat([]string{huge}, 70)
	r := reportOf(t, read(t, text.String()), "bfc", 8*device.GiB)
	r.Traces[0].Stacks = list
	k := keptOf(t, written(t, r))
	require.Len(t, k.starts, len(list)-k.leftOut+1)
	require.Greater(t, len(k.starts), 100)
	require.Greater(t, k.leftOut, 100)
	require.Equal(t, uint32(2), k.blocks[0], "the heaviest")
	require.Equal(t, uint32(1), k.blocks[999], "the lightest is left out")
	size := len(strings.Join(k.places, "\n")) + 4*len(k.frames) + 4*len(k.starts)
	require.Less(t, size, 64*1000+4*64)
	for _, p := range k.places {
		require.Less(t, len(p), 450)
	}
}
