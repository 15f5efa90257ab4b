package workload_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

func ExampleOpen() {
	t, err := workload.OpenRecording("meta_moe_ep_train")
	if err != nil {
		fmt.Println(err)
		return
	}
	info := t.Info()
	fmt.Println(info.Allocs, "allocations on", len(info.Streams), "streams, at most", info.Peak, "live")
	// Output: 11336 allocations on 2 streams, at most 75.84GiB live
}
