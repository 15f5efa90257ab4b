//go:build linux && (amd64 || arm64) && !nocuda

package cuda_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/device/devicetest"
)

// open returns a device that is closed at the end.
func open(t testing.TB, c cuda.Config) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("the device does not close: %v", err)
		}
	})
	return d
}

// suite runs the conformance suite of devices.
func suite(t *testing.T, c cuda.Config) {
	t.Helper()
	devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
		of := c
		of.Ordinal = ordinal
		return open(t, of)
	})
}

// TestConformance runs the suite over the stand-in, with and without what older drivers lack.
func TestConformance(t *testing.T) {
	for name, without := range map[string][]cudatest.Part{
		"all": nil, "no-pools": {cudatest.Pools}, "no-virtual": {cudatest.Virtual, cudatest.Pools, cudatest.Capture},
	} {
		t.Run(name, func(t *testing.T) {
			driver := cudatest.Build(t, without...)
			control := cudatest.Steer(t, driver)
			suite(t, cuda.Config{Driver: driver})
			if n := control.Left(); n != 0 {
				t.Errorf("all devices are closed and the driver has %d things left", n)
			}
		})
	}
	t.Run("limited", func(t *testing.T) {
		driver := cudatest.Build(t)
		cudatest.Steer(t, driver)
		suite(t, cuda.Config{Driver: driver, Limit: 256 * device.MiB})
	})
}

// TestOnTheGPU runs the suite on the first two GPUs, or the first alone, where there are any.
func TestOnTheGPU(t *testing.T) {
	list, err := cuda.List("")
	if err != nil {
		t.Skipf("no GPU: %v", err)
	}
	if len(list.GPUs) == 0 {
		t.Skip("the driver shows no GPU")
	}
	if len(list.GPUs) == 1 {
		t.Log("one GPU: checks with things of another device use a second view of it, whose numbers differ")
	}
	devicetest.Run(t, func(t testing.TB, ordinal int) device.Device {
		return open(t, cuda.Config{Ordinal: ordinal % len(list.GPUs)})
	})
}

// TestErrorsAreNamed injects errors and looks at what becomes of them.
func TestErrorsAreNamed(t *testing.T) {
	driver := cudatest.Build(t)
	control := cudatest.Steer(t, driver)
	d := open(t, cuda.Config{Driver: driver})
	for _, c := range []struct {
		code  int
		is    error
		words string
	}{
		{2, device.ErrOutOfMemory, "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{801, device.ErrUnsupported, "CUDA_ERROR_NOT_SUPPORTED (801): operation not supported"},
		{700, nil, "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"},
		{12345, nil, "cuMemAlloc_v2 returned 12345, which the driver has no name for"},
	} {
		was := d.Usage()
		control.Fail("cuMemAlloc_v2", 1, c.code, 1)
		_, err := d.Reserve(device.MiB, 0)
		refused, ok := errors.AsType[*cuda.Error](err)
		if !ok || int(refused.Code) != c.code || !strings.Contains(err.Error(), c.words) || c.is != nil &&
			!errors.Is(err, c.is) {
			t.Errorf("code %d: %v, want %q", c.code, err, c.words)
		}
		now := d.Usage()
		if now.Held != was.Held || now.Calls[device.CallReserve].Failed != was.Calls[device.CallReserve].Failed+1 {
			t.Errorf("code %d: %+v was held, %+v is", c.code, was, now)
		}
	}
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	control.Fail("cuEventQuery", 1, int(cuda.CodeNotReady), 1)
	if done, err := d.Done(e); done || err != nil {
		t.Errorf("an event that is not ready: done %v, %v", done, err)
	}
	if done, err := d.Done(e); !done || err != nil {
		t.Errorf("an event that is ready: done %v, %v", done, err)
	}
	if err := d.DestroyEvent(e); err != nil {
		t.Error(err)
	}
}

// TestOpening goes wrong at each of its calls, and gives the context back.
func TestOpening(t *testing.T) {
	driver := cudatest.Build(t)
	control := cudatest.Steer(t, driver)
	open(t, cuda.Config{Driver: driver, Ordinal: 1}) // the driver is loaded
	held := control.Left()
	for _, function := range []string{
		"cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuMemGetAllocationGranularity",
		"cuDeviceGetDefaultMemPool",
		"cuMemPoolGetAttribute",
	} {
		control.Fail(function, 1, 999, 1)
		if _, err := cuda.Open(cuda.Config{Driver: driver}); err == nil || !strings.Contains(err.Error(), function) {
			t.Errorf("%s fails and opening answers %v", function, err)
		}
		if n := control.Left(); n != held {
			t.Errorf("%s failed, and the driver holds %d things, %d before", function, n, held)
		}
	}
	for _, ordinal := range []int{-1, 2, 255, 256, 1 << 40} {
		if _, err := cuda.Open(cuda.Config{Driver: driver, Ordinal: ordinal}); !errors.Is(err, device.ErrInvalid) {
			t.Errorf("cuda:%d: %v, want an error that says which there are", ordinal, err)
		}
	}
}

// TestDriverThatDoesNotStart has a driver that says so.
func TestDriverThatDoesNotStart(t *testing.T) {
	t.Setenv("STANDIN_INIT", "100")
	driver := cudatest.Build(t)
	_, err := cuda.Open(cuda.Config{Driver: driver})
	if !errors.Is(err, cuda.ErrNoDriver) || !strings.Contains(err.Error(), "CUDA_ERROR_NO_DEVICE (100)") {
		t.Errorf("a driver without a GPU: %v", err)
	}
}

// TestList shows the GPUs of the stand-in.
func TestList(t *testing.T) {
	list, err := cuda.List(cudatest.Build(t))
	if err != nil || list.Driver != "12.4" || len(list.GPUs) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	want := cuda.GPU{
		Ordinal: 1, Name: "Stand-in 1", Memory: device.GiB, Capability: "9.0", Multiprocessors: 132, PCI: "0000:18:00.0",
		VirtualMemory: true, Pools: true,
	}
	if list.GPUs[1] != want {
		t.Errorf("the second GPU is %+v, want %+v", list.GPUs[1], want)
	}
}

// TestGPUWithoutCapabilities has a driver with all functions, and a GPU that lacks what they are
// for.
func TestGPUWithoutCapabilities(t *testing.T) {
	t.Setenv("STANDIN_PLAIN_MAPPINGS", "1")
	d := open(t, cuda.Config{Driver: cudatest.Build(t)})
	for c := range device.Capabilities {
		want := c == device.CapStreams || c == device.CapMemoryInfo || c == device.CapContents
		if device.Has(d, c) != want {
			t.Errorf("the device has %v: %v", c, !want)
		}
	}
}

// TestBoundedPoolsNeedANewDriver asks an older driver for one.
func TestBoundedPoolsNeedANewDriver(t *testing.T) {
	t.Setenv("STANDIN_VERSION", "11040")
	driver := cudatest.Build(t)
	cudatest.Steer(t, driver)
	d := open(t, cuda.Config{Driver: driver})
	if _, err := d.NewPool(device.GiB); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("a bounded pool: %v, want ErrUnsupported", err)
	}
	if _, err := d.NewPool(0); err != nil {
		t.Errorf("a pool without a bound: %v", err)
	}
}

// TestCloseGivesAllBack closes a device that holds one of everything.
func TestCloseGivesAllBack(t *testing.T) {
	driver := cudatest.Build(t)
	control := cudatest.Steer(t, driver)
	d, err := cuda.Open(cuda.Config{Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = d.Reserve(device.MiB, 4*device.MiB)
	check(err)
	g := d.Granularity()
	r, err := d.ReserveRange(4*g, 0, 0)
	check(err)
	for i := range device.Size(2) {
		h, err := d.CreateHandle(g)
		check(err)
		check(d.Map(r.Addr.Add(i*g), g, h, 0))
		if i == 0 {
			check(d.ReleaseHandle(h))
		}
	}
	p, err := d.NewPool(0)
	check(err)
	for _, of := range []device.Pool{0, p} {
		_, err = d.AllocAsync(of, device.MiB, 3)
		check(err)
	}
	e, err := d.NewEvent()
	check(err)
	check(d.Record(e, 3))
	check(d.Close())
	check(d.Close())
	check(nil)
	if n := control.Left(); n > 1 { // the default pool keeps what it had
		t.Errorf("the device is closed and the driver has %d things left", n)
	}
	if _, err := d.Reserve(1, 0); !errors.Is(err, device.ErrInvalid) {
		t.Errorf("a region of a closed device: %v", err)
	}
	if _, err := d.AllocAsync(0, 1, 77); !errors.Is(err, device.ErrInvalid) {
		t.Errorf("a block of a closed device: %v", err)
	}
}

// TestAnyGoroutineMayCall takes and gives regions of two devices from many goroutines, of which
// each lands on any thread.
func TestAnyGoroutineMayCall(t *testing.T) {
	driver := cudatest.Build(t)
	cudatest.Steer(t, driver)
	var wg sync.WaitGroup
	for ordinal := range 2 {
		d := open(t, cuda.Config{Driver: driver, Ordinal: ordinal})
		var mu sync.Mutex
		for range 8 {
			wg.Go(func() {
				for range 50 {
					mu.Lock()
					r, err := d.Reserve(device.MiB, 0)
					if err == nil {
						err = d.Release(r.Addr)
					}
					mu.Unlock()
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestForeignStreams passes streams of somebody else on.
func TestForeignStreams(t *testing.T) {
	driver := cudatest.Build(t)
	control := cudatest.Steer(t, driver)
	d := open(t, cuda.Config{Driver: driver, ForeignStreams: true})
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Record(e, 0); err != nil {
		t.Error(err)
	}
	if n := control.Calls("cuStreamCreate"); n != 0 {
		t.Errorf("%d streams were made", n)
	}
}

// TestCallsDuringStreamCapture makes calls that a capture in the same process forbids to threads
// that do not say that they know.
func TestCallsDuringStreamCapture(t *testing.T) {
	runtime.LockOSThread() // the mode is the thread's
	defer runtime.UnlockOSThread()
	round := func(t *testing.T, d *cuda.Device) error {
		t.Helper()
		r, err := d.Reserve(device.MiB, 0)
		if err != nil {
			return err
		}
		h, err := d.CreateHandle(d.Granularity())
		if err != nil {
			return err
		}
		e, err := d.NewEvent()
		if err != nil {
			return err
		}
		_, err = d.Done(e)
		return errors.Join(err, d.Fill(r.Addr, device.MiB, 7), d.DestroyEvent(e), d.ReleaseHandle(h), d.Release(r.Addr))
	}
	driver := cudatest.Build(t)
	control := cudatest.Steer(t, driver)
	for _, c := range []cuda.Config{{Driver: driver}, {Driver: driver, ForeignStreams: true}} {
		d := open(t, c)
		control.Capture(true)
		if err := round(t, d); err != nil || control.Lost() != 0 || control.Mode() != 0 {
			t.Errorf("%+v: %v; %d captures lost, the thread is in mode %d", c, err, control.Lost(), control.Mode())
		}
		control.Fail("cuThreadExchangeStreamCaptureMode", 1, 1, 1)
		if _, err := d.Reserve(device.MiB, 0); err == nil ||
			!strings.Contains(err.Error(), "cuThreadExchangeStreamCaptureMode") {
			t.Errorf("%+v: the mode cannot be exchanged: %v", c, err)
		}
		if err := round(t, d); err != nil {
			t.Errorf("%+v: after that: %v", c, err)
		}
		control.Capture(false)
	}
	driver = cudatest.Build(t, cudatest.Capture)
	control = cudatest.Steer(t, driver)
	d := open(t, cuda.Config{Driver: driver})
	control.Capture(true)
	if _, err := d.Reserve(device.MiB, 0); err == nil || !strings.Contains(err.Error(), "STREAM_CAPTURE_UNSUPPORTED") ||
		control.Lost() != 1 {
		t.Errorf("a driver that cannot: %v, %d captures lost, want one: else the stand-in shows nothing", err, control.Lost())
	}
	control.Capture(false)
}
