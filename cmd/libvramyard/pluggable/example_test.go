package pluggable_test

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/cmd/libvramyard/pluggable"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies"
)

// A library reads its strategy and its device from the environment, and then serves PyTorch's
// calls.
func Example() {
	environment := map[string]string{pluggable.EnvStrategy: "caching", pluggable.EnvDevice: "sim:1GiB"}
	l := pluggable.New(pluggable.Host{
		Env: func(name string) string { return environment[name] }, Strategies: strategies.All(),
	})
	at, err := l.Alloc(1000, 0, 0, 0)
	if err != nil {
		panic(err)
	}
	_, region, _ := l.Base(at)
	fmt.Println("in a region of", region)
	fmt.Println("free:", l.Free(at, 0))
	_, err = l.Alloc(2*device.GiB, 0, 0, 0)
	if oom, ok := errors.AsType[*pluggable.OutOfMemoryError](err); ok {
		fmt.Println("out of memory:", oom.Size, "of", oom.Total)
	}
	// Output:
	// in a region of 2MiB
	// free: <nil>
	// out of memory: 2GiB of 1GiB
}
