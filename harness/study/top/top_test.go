package top_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/trace"
)

// stacks are stacks by allocation. A frame is a file and a function, the innermost first.
type stacks [][][2]string

func (s stacks) Stack(id uint64) uint32 {
	if id >= uint64(len(s)) || s[id] == nil {
		return 0
	}
	return uint32(id) + 1
}

func (s stacks) Lines(stack uint32) (lines []string, site string) {
	for _, f := range s[stack-1] {
		lines = append(lines, f[0]+" "+f[1])
	}
	return lines, lines[0]
}

func (s stacks) Frames(stack uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range s[stack-1] {
			if !yield(stack<<8 | uint32(i)) {
				return
			}
		}
	}
}

func (s stacks) Frame(frame uint32) (file, function string) {
	f := s[frame>>8-1][frame&0xff]
	return f[0], f[1]
}

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "t.trace", trace.Options{})
	require.NoError(t, err)
	return tr
}

func measure(t *testing.T, text string, of top.Stacks) *top.Report {
	t.Helper()
	r, err := top.Measure(read(t, text), of)
	require.NoError(t, err)
	for _, m := range []*top.Moment{&r.Peak, r.Failure} {
		if m != nil {
			requireWhole(t, m)
		}
	}
	return r
}

// requireWhole fails unless every way to group the blocks has all of them.
func requireWhole(t *testing.T, m *top.Moment) {
	t.Helper()
	var bytes [3]device.Size
	var blocks [3]int
	add := func(k int, n device.Size, count int) { bytes[k] += n; blocks[k] += count }
	for _, h := range m.Categories {
		add(0, h.Bytes, h.Blocks)
	}
	for _, h := range m.Holders {
		add(1, h.Bytes, h.Blocks)
	}
	for _, s := range m.Stacks {
		add(2, s.Bytes, s.Blocks)
	}
	require.Equal(t, [3]device.Size{m.Bytes, m.Bytes, m.Bytes}, bytes)
	require.Equal(t, [3]int{m.Blocks, m.Blocks, m.Blocks}, blocks)
}

// names returns name and bytes of holders.
func names(list []top.Holder) (said []string) {
	for _, h := range list {
		said = append(said, fmt.Sprintf("%s %v", h.Name, h.Bytes))
	}
	return said
}

// TestThePeakIsTheFirstEventWithMostLiveBytes groups by tag, and leaves out what was freed before
// and made after.
func TestThePeakIsTheFirstEventWithMostLiveBytes(t *testing.T) {
	r := measure(t, `a 1 3MiB tag=weights:fc
a 2 1MiB tag=temp:mul
f 2
a 3 4MiB tag=actgrad:mm
a 4 1MiB tag=weights:head
f 3
a 5 4MiB tag=activation:mm
`, nil)
	require.Equal(t, top.ByTag, r.By)
	require.True(t, r.History)
	require.Nil(t, r.Failure)
	require.Equal(t, 4, r.Peak.Event)
	require.Equal(t, 8*device.MiB, r.Peak.Bytes)
	require.Equal(t, []string{"actgrad:mm 4MiB", "weights:fc 3MiB", "weights:head 1MiB"}, names(r.Peak.Holders))
	require.Equal(t, []string{"weights 4MiB", "gradients of activations 4MiB"}, names(r.Peak.Categories))
	var folded bytes.Buffer
	require.NoError(t, r.Peak.WriteFolded(&folded))
	require.Equal(t, "actgrad;mm 4194304\nweights;fc 3145728\nweights;head 1048576\n", folded.String())
}

// TestTheFailureIsTheLastRefusedRequest looks at two refusals, of which the first has more live
// bytes.
func TestTheFailureIsTheLastRefusedRequest(t *testing.T) {
	r := measure(t, "a 1 3MiB tag=weights\na 2 2MiB tag=input\nrefused 8MiB\nf 2\na 3 1MiB tag=grad\nrefused "+
		"9MiB\nf 1\n", nil)
	require.Equal(t, 1, r.Peak.Event, "a refused request is not live")
	require.Equal(t, 5, r.Failure.Event)
	require.Equal(t, 9*device.MiB, r.Failure.Asked)
	require.Equal(t, 2, r.Failure.Refusals)
	require.Equal(t, []string{"weights 3MiB", "grad 1MiB"}, names(r.Failure.Holders))
}

// TestStacksAreGroupedByCallSite has two stacks of one call site, and a block without a stack.
func TestStacksAreGroupedByCallSite(t *testing.T) {
	forward := [2]string{"model.py", "forward"}
	of := stacks{
		nil, {forward, {"train.py", "one; step"}}, {forward, {"train.py", "eval"}},
		{{"torch/optim/adam.py", "_init_group"}, forward},
	}
	r := measure(t, "a 0 1MiB\na 1 4MiB\na 2 2MiB\na 3 3MiB\n", of)
	require.Equal(t, top.ByCallSite, r.By)
	require.Equal(t, []string{"model.py forward 6MiB", "torch/optim/adam.py _init_group 3MiB", "(not recorded) 1MiB"},
		names(r.Peak.Holders))
	require.Equal(t, []string{"activations 6MiB", "optimizer 3MiB", "not known 1MiB"}, names(r.Peak.Categories))
	require.True(t, slices.ContainsFunc(r.Notes(), func(n string) bool {
		return strings.HasPrefix(n, "1 of 4 blocks have no stack")
	}))
	var folded bytes.Buffer
	require.NoError(t, r.Peak.WriteFolded(&folded))
	require.Contains(t, folded.String(), "train.py one, step;model.py forward 4194304\n")

	few := measure(t, "a 0 9MiB\na 9 1234567\na 1 4MiB\n", of)
	require.Equal(t, top.BySize, few.By, "most bytes have no stack")
	require.Equal(t, []string{"blocks of 9MiB 9MiB", "blocks of 4MiB 4MiB", "blocks of 1.18MiB (1234567 bytes) 1.18MiB"},
		names(few.Peak.Holders))
}

// TestAStateWithoutHistoryIsTheLast has a block that was given back before the file was written.
func TestAStateWithoutHistoryIsTheLast(t *testing.T) {
	r := measure(t, "live 0 1MiB tag=weights\nlive 1 2MiB tag=kvcache\nf 1\n", nil)
	require.False(t, r.History)
	require.Equal(t, []string{"weights 1MiB"}, names(r.Peak.Holders))
	require.Contains(t, r.Notes()[0], "no history")
	nothing := measure(t, "# name nothing\n", nil)
	require.Equal(t, -1, nothing.Peak.Event)
}

// TestCategoriesOfFrames has what is known of the frames of PyTorch programs.
func TestCategoriesOfFrames(t *testing.T) {
	for frame, want := range map[[2]string]top.Category{
		{"/x/site-packages/torch/optim/adamw.py", "_init_group"}:                                           top.Optimizer,
		{"/x/site-packages/torch/nn/modules/module.py", "_apply"}:                                          top.Weights,
		{"/x/site-packages/torch/nn/modules/module.py", "_call_impl"}:                                      top.Unknown,
		{"/x/site-packages/torch/nn/modules/linear.py", "__init__"}:                                        top.Weights,
		{"cache.py", "__init__"}:                                                                           top.Unknown,
		{"chat", "load_weights"}:                                                                           top.Weights,
		{"loader.py", "load_images"}:                                                                       top.Unknown,
		{`C:\\venv\\Lib\\site-packages\\transformers\\modeling_utils.py`, "from_pretrained"}:               top.Weights,
		{"/x/site-packages/transformers/cache_utils.py", "update"}:                                         top.Cache,
		{"??", "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"}: top.Gradients,
		{"??", "torch::autograd::VariableType::(anonymous namespace)::mul_Tensor(c10::DispatchKeySet)"}:    top.Unknown,
		{"/x/site-packages/torch/autograd/graph.py", "_engine_run_backward"}:                               top.Gradients,
		{"model.py", "forward"}:                                                                            top.Activations,
		{"train.py", "<module>"}:                                                                           top.Unknown,
	} {
		r := measure(t, "a 0 1MiB\n", stacks{{{"??", "at::empty"}, frame}})
		require.Equal(t, want, r.Peak.Holders[0].Category, frame)
	}
}

// TestAFlameGraphHoldsEveryByte adds up the boxes inside of each box, the small ones joined.
func TestAFlameGraphHoldsEveryByte(t *testing.T) {
	var text strings.Builder
	of := stacks{}
	for i := range 3000 {
		fmt.Fprintf(&text, "a %d %d\n", i, 100+i%700)
		of = append(of, [][2]string{{"m.py", fmt.Sprint("leaf", i%800)}, {"m.py", fmt.Sprint("layer", i%3)},
			{"train.py", "main"}})
	}
	text.WriteString("a 9999 9MiB\n")
	of = append(of, make(stacks, 7000)...)
	of[9999] = [][2]string{{"torch/optim/adam.py", "_init_group"}, {"train.py", "main"}}
	r := measure(t, text.String(), of)
	root := r.Peak.Flame()
	require.Equal(t, r.Peak.Bytes, root.Bytes)
	require.Equal(t, top.Optimizer, root.Category)
	boxes := 0
	var look func(n *top.Node)
	look = func(n *top.Node) {
		boxes++
		sum, blocks := device.Size(0), 0
		for _, b := range n.Below {
			sum += b.Bytes
			blocks += b.Blocks
			look(b)
		}
		if len(n.Below) > 0 {
			require.Equal(t, n.Bytes, sum)
			require.Equal(t, n.Blocks, blocks)
		}
	}
	look(root)
	require.Less(t, boxes, 20)
	require.Equal(t, "train.py main", root.Below[0].Name)
	require.Equal(t, "torch/optim/adam.py _init_group", root.Below[0].Below[0].Name)
}

// shared are stacks that have all lines but the innermost in common.
type shared struct {
	stacks
	outer []string
}

func (s shared) Stack(id uint64) uint32 { return uint32(id) + 1 }

func (s shared) Lines(stack uint32) (lines []string, site string) {
	site = fmt.Sprintf("model.py:%d f", stack)
	return append([]string{site}, s.outer...), site
}

func (s shared) Frames(uint32) iter.Seq[uint32] { return func(func(uint32) bool) {} }

// TestSharedLinesAreBounded shows stacks that would take a gigabyte: the call site is kept of those
// that do not fit.
func TestSharedLinesAreBounded(t *testing.T) {
	const blocks = 4000
	var text strings.Builder
	for i := range blocks {
		fmt.Fprintf(&text, "a %d 1\n", i)
	}
	r := measure(t, text.String(), shared{outer: slices.Repeat([]string{strings.Repeat("x", 512)}, 256)})
	require.Len(t, r.Peak.Stacks, blocks)
	require.Len(t, r.Peak.Holders, blocks)
	whole := 0
	for _, s := range r.Peak.Stacks {
		if len(s.Lines) > 1 {
			whole++
			require.Len(t, s.Lines, 257)
		}
	}
	require.InDelta(t, 500, whole, 100)
	require.Equal(t, blocks-whole, r.Cut)
	require.Contains(t, r.Notes(), fmt.Sprintf("%d stacks are shown by their call site alone: the others use all the "+
		"memory for stacks.", r.Cut))
}

// TestTagsHaveAtMost256Lines groups by a tag that is made of separators.
func TestTagsHaveAtMost256Lines(t *testing.T) {
	r := measure(t, "a 1 1 tag="+strings.Repeat("x:", 1000)+"\n", nil)
	require.Len(t, r.Peak.Stacks[0].Lines, 256)
}
