package provenance_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/provenance"
)

func ExampleRead() {
	fmt.Println(provenance.Read().Version == provenance.Version)
	// Output: true
}
