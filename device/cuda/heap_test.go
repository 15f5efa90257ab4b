//go:build !race && linux && (amd64 || arm64) && !nocuda

package cuda_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
)

// TestNothingIsAllocatedOnTheHeap makes the calls that strategies make while they run. Not under
// the race detector, where sync.Pool, from which purego takes the arguments of a call, forgets at
// random what it holds.
func TestNothingIsAllocatedOnTheHeap(t *testing.T) {
	driver := cudatest.Build(t)
	d := open(t, cuda.Config{Driver: driver, Limit: 64 * device.MiB})
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(){
		"reserve and release": func() {
			r, err := d.Reserve(device.MiB, 0)
			if err != nil || d.Release(r.Addr) != nil {
				t.Fatal(err)
			}
		},
		"refused": func() {
			if _, err := d.Reserve(device.GiB, 0); err == nil {
				t.Fatal("more than the limit")
			}
		},
		"event": func() {
			if err := d.Record(e, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Done(e); err != nil {
				t.Fatal(err)
			}
		},
	} {
		f()
		if n := testing.AllocsPerRun(50, f); n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
