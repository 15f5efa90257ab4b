package corpus_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/trace/corpus"
)

func ExampleLookup() {
	e, ok := corpus.Lookup("meta_gpt2xl_amp")
	fmt.Println(ok, e.Inside(), e.License, e.Stats.Allocs)
	// Output: true false Apache-2.0 35113
}
