package check_test

import (
	"context"
	"fmt"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/strategies"
)

func ExampleRun() {
	setup, err := strategies.All().Lookup("tlsf", nil)
	if err != nil {
		panic(err)
	}
	subjects, err := check.Subjects(setup, sim.Config{})
	if err != nil {
		panic(err)
	}
	r, err := check.Run(context.Background(), subjects, check.Options{Sequences: 20})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Sequences(), len(r.Failures()))
	// Output: 40 0
}
