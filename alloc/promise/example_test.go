package promise_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Two free chunks of 64 bytes must merge only if they are buddies.
func ExampleMergeBuddies() {
	at := func(addr device.Addr) alloc.Chunk { return alloc.Chunk{Region: 4096, Addr: 4096 + addr, Size: 64} }
	fmt.Println(promise.MergeBuddies(at(0), at(64)), promise.MergeBuddies(at(64), at(128)))
	fmt.Println(promise.PowersOfTwo(64, 256), promise.PowerOfTwo(100, 64))
	// Output:
	// true false
	// [64B 128B 256B] 128B
}
