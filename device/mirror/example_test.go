package mirror_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/mirror"
	"github.com/vramyard/vramyard/device/sim"
)

// card is a second simulated device in place of a real one.
type card struct{ device.Device }

func (card) Close() error { return nil }

// A card that is smaller than the model refuses a reservation that the model grants.
func ExampleNew() {
	model, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	if err != nil {
		panic(err)
	}
	small, err := sim.New(sim.Config{Capacity: 16 * device.MiB})
	if err != nil {
		panic(err)
	}
	d := mirror.New(model, card{small}, mirror.Options{})
	_, err = d.Reserve(8*device.MiB, 0)
	fmt.Println(err, d.Differs())
	_, err = d.Reserve(32*device.MiB, 0)
	fmt.Println(err)
	fmt.Println(d.Differs())
	// Output:
	// <nil> <nil>
	// <nil>
	// reserve 33554432: the model answers "done", the card "device: out of memory"
}
