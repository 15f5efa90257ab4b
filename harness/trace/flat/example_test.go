package flat_test

import (
	"log"
	"os"

	"github.com/vramyard/vramyard/harness/trace/flat"
)

// Rows of a program's own type become a table whose columns are those of their JSON form.
func ExampleOf() {
	type memory struct {
		Peak uint64 `json:"peak_bytes"`
	}
	type result struct {
		Strategy string   `json:"strategy"`
		Memory   memory   `json:"memory"`
		Failed   *float64 `json:"failed_share,omitempty"` // absent for runs that completed
	}
	share := 0.25
	table := flat.Of([]result{{"bfc", memory{4096}, nil}, {"buddy", memory{8192}, &share}})
	if err := table.WriteCSV(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// strategy,memory.peak_bytes,failed_share
	// bfc,4096,
	// buddy,8192,0.25
}
