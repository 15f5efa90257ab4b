package torch_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// A snapshot of PyTorch, here as JSON, has a history for each device; each becomes a trace of the
// program's requests.
func ExampleTraces() {
	const file = `{"segments": [], "device_traces": [[
		{"action": "alloc", "addr": 4096, "size": 1000, "stream": 0},
		{"action": "free_requested", "addr": 4096, "size": 1000, "stream": 0},
		{"action": "free_completed", "addr": 4096, "size": 1000, "stream": 0}]]}`
	s, err := torch.Read(strings.NewReader(file), nil)
	if err != nil {
		log.Fatal(err)
	}
	results, err := torch.Traces(s)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Printf("GPU %d: %d allocations, %d frees\n", r.GPU, r.Report.Allocs, r.Report.Frees)
		if err := trace.Write(os.Stdout, &trace.Trace{Events: r.Trace.Events, Tags: r.Trace.Tags}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// GPU 0: 1 allocations, 1 frees
	// # vramyard-trace 1
	// a 0 1000
	// f 0
}
