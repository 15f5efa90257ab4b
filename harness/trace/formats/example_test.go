package formats_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// A log of RMM becomes a trace: the content tells the format, and each allocation keeps its thread.
func ExampleRead() {
	const text = `Thread,Time,Action,Pointer,Size,Stream
4711,10:00:00.000000,allocate,0x7f0000000000,4096,0x0
4712,10:00:00.000005,allocate,0x7f0000001000,512,0x0
4711,10:00:00.000009,free,0x7f0000000000,4096,0x0
`
	t, err := formats.Read(strings.NewReader(text), "run.csv", formats.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("format", t.Header.Format)
	t.Header = trace.Header{}
	if err := trace.Write(os.Stdout, t); err != nil {
		log.Fatal(err)
	}
	// Output:
	// format rmm
	// # vramyard-trace 1
	// a 0 4096 thread=1 t=0
	// a 1 512 thread=2 t=5000
	// f 0 t=9000
}
