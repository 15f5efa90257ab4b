package workload_test

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

func ExampleShape_New() {
	shape, err := workload.Lookup("w1")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := shape.Default
	p.Live = 10_000
	w, err := shape.New(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := w.Summary()
	fmt.Println(w)
	fmt.Printf("%d bytes live at most, hash %v\n", uint64(s.PeakLive), s.Hash)
	// Output:
	// w1 live=10000 pairs=1000000 seed=42
	// 6547101696 bytes live at most, hash d31b355017deee3f
}

func ExampleWorkload_Program() {
	shape, err := workload.Lookup("w3")
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := shape.New(workload.Params{Seed: 42, Pairs: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range w.Program().Churn {
		if o.IsFree() {
			fmt.Println("free slot", o.Slot())
		} else {
			fmt.Println("allocate", o.Size(), "into slot", o.Slot())
		}
	}
	// Output:
	// allocate 16.08MiB into slot 421
	// free slot 420
	// allocate 27.20MiB into slot 151
	// free slot 150
	// allocate 3.77MiB into slot 93
	// free slot 92
}
