package planted_test

import (
	"fmt"

	"github.com/vramyard/vramyard/props/planted"
)

// Package bugs adds such conditions to a copy of the source. An ordinary build has no bugs.
func ExampleIs() {
	merged := !planted.Is("tlsf/misses-left")
	fmt.Println(merged, planted.Enabled)
	// Output: true false
}
