//go:build linux

package plugin_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// firstBad is the number of the request at which the allocators of testdata/faults.c violate the
// contract.
const firstBad = 7

// untilFault allocates until the error is neither nil nor a refusal.
func untilFault(s alloc.Strategy) (granted int, err error) {
	for range 2 * firstBad {
		_, err := s.Alloc(alloc.Request{Size: 1000, Stream: 3})
		switch {
		case err == nil:
			granted++
		case !errors.Is(err, alloc.ErrOutOfMemory):
			return granted, err
		}
	}
	return granted, nil
}

func TestFaultEndsTheInstance(t *testing.T) {
	t.Parallel()
	path := object(t, "faults.c")
	for alloc, want := range map[string]struct{ broken, what string }{
		"overlap":    {"I10", `it returned 0x[0-9a-f]+: 1000 bytes there overlap live block 0x[0-9a-f]+ of 1000 bytes`},
		"twice":      {"I10", `it returned 0x[0-9a-f]+, where a live block of 1000 bytes starts`},
		"misaligned": {"I12", `it returned 0x[0-9a-f]+, want a multiple of 512`},
		"outside": {"I11",
			`it returned 0x5000: 1000 bytes there are not within one region or mapping that it holds`},
		"past_end": {"I11",
			`it returned 0x[0-9a-f]+: 1000 bytes there are not within one region or mapping that it holds`},
		"wraps":      {"I11", `it returned 0xf+e00: a block of 1000 bytes there exceeds the address space`},
		"on_heap":    {"I1[12]", `it returned 0x[0-9a-f]+`},
		"takes_back": {"I11", `it gave back .* at 0x[0-9a-f]+, in which live block 0x[0-9a-f]+ of 1000 bytes lies`},
		"crash":      {"I35", `killed by SIGSEGV at 0x10`},
		"wild":       {"I35", `killed by SIGSEGV at 0x7f0000[0-9a-f]+`},
		"divide":     {"I35", `killed by SIGFPE`},
		"gives_up":   {"I35", `killed by SIGABRT`},
		"complains":  {"I35", `killed by SIGABRT: fatal: out of patience`},
		"leaves":     {"I35", `exited with status 3`},
		"deep":       {"I35", `killed by SIGSEGV at 0x[0-9a-f]+`},
		"hangs":      {"I36", `it did not return within 3s`},
		"spins":      {"I36", `it did not return within 3s`},
	} {
		t.Run(alloc, func(t *testing.T) {
			t.Parallel()
			query := "alloc=" + alloc + "&free=direct_free"
			if want.broken == "I36" {
				query += "&timeout=3s"
			}
			s, _ := started(t, path, query)
			granted, err := untilFault(s)
			fault, ok := errors.AsType[*plugin.Fault](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, firstBad-1, granted)
			require.Regexp(t, `^plugin: call 7, `+alloc+`\(1000 bytes, device 0, stream 3\): `+want.what, err.Error())
			require.Regexp(t, want.broken, fault.Invariant())
			_, again := s.Alloc(anyRequest)
			require.Equal(t, err, again, "an ended instance returns the same fault again")
		})
	}
}

// anyRequest is a request to an instance that has ended.
var anyRequest = alloc.Request{Size: 1}

func TestExceptionInAllocIsARefusal(t *testing.T) {
	t.Parallel()
	path := object(t, "throws.cc")
	for symbol, want := range map[string]string{
		"throws":        "throws threw an exception: the pool of this plug-in is used up\n",
		"throws_number": "throws_number threw an exception: something that is no std::exception\n",
	} {
		s, _ := started(t, path, "alloc="+symbol+"&free=frees")
		granted, err := untilFault(s)
		require.NoError(t, err)
		require.Equal(t, 2*firstBad-1, granted)
		require.EqualValues(t, 1, s.Stats().OOMs)
		why, ok := power.LastRefusal(s)
		require.True(t, ok)
		require.Equal(t, power.ReasonLimit, why.Reason)
		for range firstBad - 1 { // the report is of the last request
			_, err = s.Alloc(alloc.Request{Size: device.GiB})
			require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		}
		report, err := power.AppendReport(s, nil, alloc.Request{Size: 1000})
		require.NoError(t, err)
		require.Contains(t, string(report), symbol+" returned null\n")
		fresh, _ := started(t, path, "alloc="+symbol+"&free=frees")
		for range firstBad {
			_, err = fresh.Alloc(alloc.Request{Size: 1000})
		}
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		report, err = power.AppendReport(fresh, nil, alloc.Request{Size: 1000})
		require.NoError(t, err)
		require.Contains(t, string(report), want)
	}
}

// TestAStaticRuntimeIsNamed runs a plug-in that needs functions only NVIDIA's CUDA runtime calls.
func TestAStaticRuntimeIsNamed(t *testing.T) {
	t.Parallel()
	s, _ := started(t, object(t, "driver.c", "-ldl"), "alloc=static_alloc&free=vmm_free")
	_, err := s.Alloc(alloc.Request{Size: 1000})
	require.EqualError(t, err, "plugin: call 1, static_alloc(1000 bytes, device 0, stream 0): it has a CUDA runtime of "+
		"NVIDIA's in it, "+
		"which starts on NVIDIA's driver alone: link it with -cudart shared")
	fault, ok := errors.AsType[*plugin.Fault](err)
	require.True(t, ok)
	require.Equal(t, "I35", fault.Invariant())
}

func TestExceptionOutsideAllocIsAFault(t *testing.T) {
	t.Parallel()
	path := object(t, "throws.cc")
	s, _ := started(t, path, "alloc=throws&free=free_throws")
	b, err := s.Alloc(alloc.Request{Size: 1000})
	require.NoError(t, err)
	require.EqualError(t, s.Free(b.Addr), "plugin: call 2, free_throws("+b.Addr.String()+
		", 1000 bytes, device 0, stream 0): "+
		"it threw an exception: not mine")
	s, _ = started(t, path, "alloc=throws_through&free=frees")
	_, err = untilFault(s)
	require.ErrorContains(t, err, "killed by SIGABRT: ")
}

func TestPluginsMayPrintAndStartThreads(t *testing.T) {
	t.Parallel()
	path := object(t, "faults.c")
	for _, symbol := range []string{"prints", "threads", "elsewhere"} {
		s, dev := started(t, path, "alloc="+symbol+"&free=direct_free")
		var blocks []device.Addr
		for range 20 {
			b, err := s.Alloc(alloc.Request{Size: 1000})
			require.NoError(t, err, symbol)
			blocks = append(blocks, b.Addr)
		}
		require.Equal(t, 20, dev.Usage().Regions)
		for _, a := range blocks {
			require.NoError(t, s.Free(a))
		}
		require.True(t, dev.Usage().Empty())
	}
}

func TestInvalidFreesDoNotReachThePlugin(t *testing.T) {
	t.Parallel()
	s, _ := started(t, object(t, "faults.c"), "alloc=direct_alloc&free=crash_in_free")
	b, err := s.Alloc(alloc.Request{Size: 1234})
	require.NoError(t, err)
	for _, a := range []device.Addr{0, b.Addr - 512, b.Addr + 1, b.Addr + 512} {
		require.ErrorIs(t, s.Free(a), alloc.ErrInvalidFree)
	}
	require.ErrorContains(t, s.Free(b.Addr), "plugin: call 2, crash_in_free("+b.Addr.String()+", 1234 bytes, device 0, "+
		"stream 0): killed by SIGSEGV at "+b.Addr.String())
}

func TestLoading(t *testing.T) {
	t.Parallel()
	build := func(source string, flags ...string) string { return object(t, source, flags...) }
	faults := build("faults.c")
	for name, c := range map[string]struct{ path, query, want string }{
		"crashes": {build("loads.c", "-DCRASHES"), "alloc=take&free=give",
			`: Segmentation fault \(signal 11\) while it was loaded$`},
		"exits": {build("loads.c", "-DLEAVES"), "alloc=take&free=give",
			`: it ended the process with status 5 while it was loaded$`},
		"hangs": {build("loads.c", "-DHANGS"), "alloc=take&free=give&timeout=3s", `: loading takes more than 3s$`},
		"unlinked": {build("loads.c", "-DSTARTS", "-Dusleep=no_such_function"), "alloc=take&free=give",
			`undefined symbol: no_such_function$`},
		"init": {faults, "alloc=crash&free=direct_free&init=crash_in_init",
			`^plugin: call 1, crash_in_init\(1 devices\): killed by SIGABRT$`},
		"devices": {faults, "alloc=crash&free=direct_free&init=tell_init&device=2", `exited with status 43$`},
		"fraction": {faults, "alloc=crash&free=direct_free&fraction=tell_fraction&share=0.5&device=1",
			`exited with status 51$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev, err := sim.New(sim.Config{})
			require.NoError(t, err)
			_, err = named(t, c.path, c.query).New(dev)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			require.True(t, dev.Usage().Empty())
			if name == "hangs" {
				require.Eventually(t, func() bool { return processes(t, c.path) == 0 }, time.Minute, 10*time.Millisecond)
			}
		})
	}
}

func TestPluginWithThreadsIsLoadedInEachInstance(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-DSTARTS", "-DASKS"} {
		path := object(t, "loads.c", flag)
		for range 3 {
			s, dev := started(t, path, "alloc=take&free=give")
			b, err := s.Alloc(alloc.Request{Size: 1000})
			require.NoError(t, err)
			require.NoError(t, s.Free(b.Addr))
			require.Equal(t, flag == "-DASKS", dev.Usage().Regions == 1)
		}
	}
}

// sequences is the number of sequences a test runs; each of their calls is a round trip to a
// process.
func sequences() int {
	if testing.Short() {
		return 3
	}
	return 12
}

// TestPluginsKeepTheInvariants runs the property suite over correct allocators.
func TestPluginsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	driver := object(t, "driver.c", "-ldl")
	for query, path := range map[string]string{
		"alloc=vmm_alloc&free=vmm_free":                       driver,
		"alloc=pool_alloc&free=pool_free":                     driver,
		"alloc=direct_alloc&free=direct_free&base=right_base": object(t, "faults.c"),
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			subject := props.SubjectOfSetup(named(t, path, query), sim.Config{Capacity: 256 * device.MiB})
			r, err := props.Verify(subject, props.Options{Sequences: sequences()})
			require.NoError(t, err)
			require.Positive(t, r.Grants)
			require.Positive(t, r.OutOfMemory)
			_, err = props.VerifyFaults(subject, props.Options{Sequences: 2, Faults: sequences()})
			require.NoError(t, err)
		})
	}
}

func TestPropertySuiteShrinksFaults(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		source string
		number props.Number
		calls  int
	}{
		"alloc=misaligned&free=direct_free":                   {"faults.c", props.IAligned, firstBad},
		"alloc=crash&free=direct_free":                        {"faults.c", props.INoPanic, firstBad},
		"alloc=hole_alloc&free=vmm_free":                      {"driver.c", props.IContained, 1},
		"alloc=direct_alloc&free=direct_free&base=wrong_base": {"faults.c", props.ICheck, 1},
	} {
		subject := props.SubjectOfSetup(named(t, object(t, want.source, "-ldl"), query),
			sim.Config{Capacity: 64 * device.MiB})
		_, err := props.Verify(subject, props.Options{Sequences: 20, Tries: 500})
		failure, ok := errors.AsType[*props.Failure](err)
		require.True(t, ok, "%s: %v", query, err)
		require.Equal(t, want.number, failure.Violation.Number, failure.Error())
		require.LessOrEqual(t, len(failure.Sequence), want.calls+1, failure.Error())
	}
}

func TestEmptyRequestsReachThePlugin(t *testing.T) {
	t.Parallel()
	s, dev := started(t, object(t, "faults.c"), "alloc=refuses&free=direct_free")
	_, err := s.Alloc(alloc.Request{})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	_, err = s.Alloc(alloc.Request{Size: 1, Align: 1024})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	require.Zero(t, dev.Usage().Calls.Total(), "CUDA returns no memory for a request of 0 bytes")
	for range firstBad - 2 {
		_, err = s.Alloc(alloc.Request{Size: 1})
		require.NoError(t, err)
	}
	_, err = s.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory, "the request for 0 bytes was the first call")
}

func TestWorkTimeIsMeasuredInThePlugin(t *testing.T) {
	t.Parallel()
	s, _ := started(t, object(t, "faults.c"), "alloc=prints&free=direct_free")
	before, err := power.WorkTime(s)
	require.NoError(t, err)
	require.Zero(t, before)
	_, err = s.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	after, err := power.WorkTime(s)
	require.NoError(t, err)
	require.Positive(t, after, "two hundred lines take time on any machine")
}

func TestAddressesAreTheSameEveryTime(t *testing.T) {
	t.Parallel()
	path := object(t, "driver.c", "-ldl")
	var first []alloc.Chunk
	for range 3 {
		s, _ := started(t, path, "alloc=pool_alloc&free=pool_free")
		for i := range 50 {
			b, err := s.Alloc(alloc.Request{Size: device.Size(1000 * (i%7 + 1)), Stream: device.Stream(i % 3), Tag: uint64(i)})
			require.NoError(t, err)
			if i%3 == 1 {
				require.NoError(t, s.Free(b.Addr))
			}
		}
		var walk []alloc.Chunk
		for c := range s.Walk {
			walk = append(walk, c)
		}
		if first == nil {
			first = walk
		}
		require.Equal(t, first, walk)
	}
}

// TestPluginsRunOnACUDADevice runs plug-ins over a stand-in of the CUDA driver.
func TestPluginsRunOnACUDADevice(t *testing.T) {
	driver := cudatest.Build(t)
	control := cudatest.Steer(t, driver)
	source := object(t, "driver.c", "-ldl")
	for query, path := range map[string]string{
		"alloc=direct_alloc&free=direct_free": object(t, "faults.c"),
		"alloc=vmm_alloc&free=vmm_free":       source,
		"alloc=pool_alloc&free=pool_free":     source,
	} {
		dev, err := cuda.Open(cuda.Config{Driver: driver, Limit: 256 * device.MiB})
		require.NoError(t, err)
		s, err := named(t, path, query).New(dev)
		require.NoError(t, err)
		before := control.Left()
		var last alloc.Block
		for range 10 {
			last, err = s.Alloc(alloc.Request{Size: 3000})
			require.NoError(t, err, query)
		}
		require.Greater(t, control.Left(), before, query)
		require.NoError(t, dev.Fill(last.Addr, last.Size, 7), "the memory can be written")
		_, err = s.Alloc(alloc.Request{Size: device.GiB})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		require.NoError(t, s.Free(last.Addr))
		require.NoError(t, s.Close())
		require.True(t, dev.Usage().Empty())
		require.NoError(t, dev.Close())
	}
	require.Zero(t, control.Left())
}

// processes returns the number of processes of a plug-in: its host and its instances.
func processes(t *testing.T, path string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, f := range all {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), path) { // one may have ended since
			n++
		}
	}
	return n
}

func TestAnEndedInstanceLeavesNoProcess(t *testing.T) {
	t.Parallel()
	path := object(t, "faults.c")
	setup := named(t, path, "alloc=crash&free=direct_free")
	for range 5 {
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		s, err := setup.New(dev)
		require.NoError(t, err)
		_, err = untilFault(s)
		require.Error(t, err)
		s, err = setup.New(dev)
		require.NoError(t, err)
		_, err = s.Alloc(alloc.Request{Size: 1})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	for range 3 { // these are not closed
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		_, err = setup.New(dev)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return processes(t, path) == 1
	}, time.Minute, 10*time.Millisecond, "the host remains for the next instance")
}
