package cuda_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device/cuda"
)

func ExampleParseDevice() {
	for _, text := range []string{"cuda:1:24GiB", "cuda:first"} {
		config, err := cuda.ParseDevice(text)
		fmt.Println(config.Ordinal, config.Limit, err)
	}
	// Output:
	// 1 24GiB <nil>
	// 0 0B device "cuda:first": want "cuda", "cuda:1", or "cuda:0:24GiB" with a limit
}
