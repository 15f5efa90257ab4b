package strategies_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies"
)

// The catalogue builds any strategy by its name, here a preset with one field changed.
func ExampleAll() {
	setup, err := strategies.All().Lookup("bfc:growth", []byte(`{"limit":67108864}`))
	if err != nil {
		panic(err)
	}
	gpu, err := sim.New(sim.Config{})
	if err != nil {
		panic(err)
	}
	s, err := setup.New(gpu)
	if err != nil {
		panic(err)
	}
	b, err := s.Alloc(alloc.Request{Size: 1000})
	fmt.Println(b.Size, s.Stats().Reserved, err)
	// Output: 1KiB 2MiB <nil>
}
