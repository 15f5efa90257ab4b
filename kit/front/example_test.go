package front_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// A front judges requests by the limits of its strategy, and remembers why the last one was
// refused.
func ExampleFront() {
	var f front.Front
	view := f.Init(front.Limits{Most: device.GiB, Align: 512}, func() (largest, bytes device.Size) {
		return 2 * device.MiB, 3 * device.MiB
	})
	for _, r := range []alloc.Request{{Size: 1000}, {Size: 1000, Align: 4096}, {Size: 2 * device.GiB}} {
		if f.Accepts(&r) {
			f.Stats.Granted(r.Size, device.AlignUp(r.Size, device.Size(512)))
			continue
		}
		err := f.Refuse(&r)
		why, _ := view.LastRefusal()
		fmt.Printf("%v: %v\n", err, why.Reason)
	}
	fmt.Println(view.Stats().Live, "live block of", view.Stats().Allocated)
	// Output:
	// alloc: invalid request: alignment cannot be honoured
	// alloc: invalid request: above the strategy's maximum
	// 1 live block of 1KiB
}

// A ledger is the table of live blocks of a strategy that keeps no record of its own at a block's
// address.
func ExampleLedger() {
	var live front.Ledger
	live.Add(0x7f0000000000, front.LiveBlock{Requested: 1000, Tag: 7, Place: 3})
	b, ok := live.Take(0x7f0000000000)
	fmt.Println(b.Requested, b.Tag, b.Place, ok)
	_, ok = live.Take(0x7f0000000000)
	fmt.Println(ok)
	// Output:
	// 1000B 7 3 true
	// false
}
