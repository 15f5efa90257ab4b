package index_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// A SizeMap is the index of a best fit: Ceil finds the smallest free chunk that is large enough,
// the lowest of its size first.
func ExampleSizeMap() {
	free := index.NewSizeMap(256)
	free.Insert(4*device.KiB, 0x9000, 1)
	free.Insert(1*device.KiB, 0x5000, 2)
	free.Insert(1*device.KiB, 0x2000, 3)

	at := free.Ceil(768)
	fmt.Println(free.Entry(at).Size, "at", free.Entry(at).Addr)
	fmt.Println("chunk", free.Take(at), "taken,", free.Len(), "left, the largest has", free.Largest())
	// Output:
	// 1KiB at 0x2000
	// chunk 3 taken, 2 left, the largest has 4KiB
}

// An AddrList keeps values in the order of addresses: Floor finds the region that an address may
// lie in.
func ExampleAddrList() {
	var regions index.AddrList[device.Size]
	for _, a := range []device.Addr{0x4000, 0x1000, 0x2000} {
		p, _ := regions.Search(a)
		regions.Insert(p, index.AddrEntry[device.Size]{Addr: a, Value: 4 * device.KiB})
	}
	p, ok := regions.Floor(0x2abc)
	fmt.Println(regions.Entry(p).Addr, ok)
	for e := range regions.All {
		fmt.Println(e.Addr, e.Value)
	}
	// Output:
	// 0x2000 true
	// 0x1000 4KiB
	// 0x2000 4KiB
	// 0x4000 4KiB
}
