package cudatest_test

import (
	"testing"

	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
)

// A test opens a device over a stand-in whose second cuMemAlloc runs out of memory.
func ExampleSteer() {
	_ = func(t *testing.T) {
		driver := cudatest.Build(t)
		control := cudatest.Steer(t, driver)
		control.Fail("cuMemAlloc_v2", 2, 2, 1)
		d, err := cuda.Open(cuda.Config{Driver: driver})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
	}
}
