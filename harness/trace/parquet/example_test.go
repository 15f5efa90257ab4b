package parquet_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
)

// A trace is written as Parquet and walked piece by piece, without putting it into memory.
func ExampleOpen() {
	var b trace.Builder
	for id := range uint64(3) {
		if err := b.Alloc(id, 4096, 0); err != nil {
			log.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := parquet.Write(&file, b.Trace()); err != nil {
		log.Fatal(err)
	}
	f, err := parquet.Open(bytes.NewReader(file.Bytes()), int64(file.Len()), "run.parquet", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Head().Events, "events")
	err = f.Batches(func(events []trace.Event) error {
		for _, e := range events {
			fmt.Println(e.Kind, e.ID, e.Size)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 3 events
	// alloc 0 4KiB
	// alloc 1 4KiB
	// alloc 2 4KiB
}
