package verify_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/study/verify"
)

func ExamplePlacement() {
	fmt.Println(verify.Placement{Block: 0x200000, Segment: 2 << 20})
	fmt.Println(verify.Placement{})
	// Output:
	// a new segment of 2097152 bytes and the block at 0x200000
	// a refusal
}
