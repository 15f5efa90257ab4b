package postmortem_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/postmortem"
)

// Half of a region is free, but a live block splits it.
func ExampleExplain() {
	free := device.Size(0)
	heap := &postmortem.Heap{DeviceFree: &free}
	for i, state := range []alloc.State{alloc.Free, alloc.Live, alloc.Free, alloc.Live} {
		heap.Chunks = append(heap.Chunks, alloc.Chunk{
			Region: 4096, Addr: device.Addr(4096 + 1024*i), Size: 1024, Requested: 1024, State: state, Tag: uint64(i),
		})
	}
	r := postmortem.Explain(heap, postmortem.Need{Request: alloc.Request{Size: 2048}, Block: 2048}, nil)
	fmt.Println(r.Cause)
	fmt.Println(r.Plans[0].Count, r.Plans[0].Blocks[0].Tag)
	// Output:
	// scattered
	// 1 1
}
