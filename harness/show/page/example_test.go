package page_test

import (
	"bytes"
	"fmt"

	"github.com/vramyard/vramyard/harness/show/page"
)

func ExampleWrite() {
	var text bytes.Buffer
	err := page.Write(&text, &page.Report{
		Kind: "compare", Title: "A step", Command: "vramyard compare step.trace",
		Facts: []page.Fact{{Name: "device", Value: "sim:64MiB"}},
	})
	fmt.Println(err, page.Is(text.Bytes()))
	// Output: <nil> true
}
