package sim_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/device-model.md")

// driverCalls names what each kind of call stands for.
var driverCalls = [device.NumCalls]string{
	device.CallReserve:          "cudaMalloc",
	device.CallRelease:          "cudaFree",
	device.CallReserveRange:     "cuMemAddressReserve",
	device.CallReleaseRange:     "cuMemAddressFree",
	device.CallCreateHandle:     "cuMemCreate",
	device.CallReleaseHandle:    "cuMemRelease",
	device.CallMap:              "cuMemMap",
	device.CallSetAccess:        "cuMemSetAccess",
	device.CallUnmap:            "cuMemUnmap",
	device.CallNewEvent:         "cudaEventCreate",
	device.CallDestroyEvent:     "cudaEventDestroy",
	device.CallRecord:           "cudaEventRecord",
	device.CallDone:             "cudaEventQuery",
	device.CallWait:             "cudaStreamWaitEvent",
	device.CallSyncEvent:        "cudaEventSynchronize",
	device.CallSyncStream:       "cudaStreamSynchronize",
	device.CallSyncDevice:       "cudaDeviceSynchronize",
	device.CallNewPool:          "cudaMemPoolCreate",
	device.CallDestroyPool:      "cudaMemPoolDestroy",
	device.CallAllocAsync:       "cudaMallocAsync",
	device.CallFreeAsync:        "cudaFreeAsync",
	device.CallTrimPool:         "cudaMemPoolTrimTo",
	device.CallPoolAttribute:    "cudaMemPoolGetAttribute",
	device.CallSetPoolAttribute: "cudaMemPoolSetAttribute",
	device.CallMemoryInfo:       "cudaMemGetInfo",
	device.CallFill:             "cudaMemset",
	device.CallCompare:          "a kernel",
}

// costsTable returns the table of costs as the page has it.
func costsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| call | stands for | base | each 2 MiB | bytes | source |\n|---|---|--:|--:|---|---|\n")
	costs, ok := sim.Published.Costs()
	require.True(t, ok)
	for call, c := range costs {
		page, moves := "", ""
		if c.Page > 0 {
			page = nanoseconds(c.Page)
		}
		if c.Moves {
			moves = "yes"
		}
		fmt.Fprintf(&b, "| %v | %s | %s | %s | %s | %s |\n", device.Call(call), driverCalls[call], nanoseconds(c.Base), page,
			moves, c.Source)
	}
	return b.String()
}

// nanoseconds returns a time in ns or µs, exactly.
func nanoseconds(ns uint64) string {
	if ns < 1000 {
		return strconv.FormatUint(ns, 10) + " ns"
	}
	return strconv.FormatFloat(float64(ns)/1000, 'f', -1, 64) + " µs"
}

// cardsTable returns the table of cards as the page has it.
func cardsTable() string {
	var b strings.Builder
	b.WriteString("| name | card | memory, MiB | bandwidth, GB/s | link, GB/s | source of the memory | " +
		"source of the bandwidth |\n|---|---|--:|--:|--:|---|---|\n")
	for _, c := range sim.Cards() {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d | %.1f | %s | %s |\n",
			c.Name, c.Model, c.Memory/device.MiB, c.Bandwidth/1e9, float64(c.Link)/1e9, c.MemorySource, c.BandwidthSource)
	}
	return b.String()
}

// TestDeviceModelPage compares the tables of the page with the ones here. To renew them:
//
//	go test ./device/sim -run TestDeviceModelPage -rewrite
func TestDeviceModelPage(t *testing.T) {
	const path = "../../docs/device-model.md"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(raw)
	for name, want := range map[string]string{"costs": costsTable(t), "cards": cardsTable()} {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
		before, rest, ok := strings.Cut(page, begin)
		require.True(t, ok, begin)
		have, after, ok := strings.Cut(rest, end)
		require.True(t, ok, end)
		if *rewrite {
			page = before + begin + want + end + after
			continue
		}
		require.Equal(t, want, have, "go test ./device/sim -run TestDeviceModelPage -rewrite")
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	}
}

// settingNames returns the settings as JSON has them.
func settingNames(t *testing.T) []string {
	text, err := json.Marshal(sim.Config{})
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	return slices.Sorted(maps.Keys(fields))
}

// TestDeviceModelPageNamesEverySetting also checks the defaults that are words.
func TestDeviceModelPageNamesEverySetting(t *testing.T) {
	raw, err := os.ReadFile("../../docs/device-model.md")
	require.NoError(t, err)
	_, settings, ok := strings.Cut(string(raw), "\n## Settings\n")
	require.True(t, ok)
	for _, field := range settingNames(t) {
		require.Contains(t, settings, "\n| `"+field+"` | ")
	}
	c := newDevice(t, sim.Config{}).Config()
	for field, value := range map[string]string{
		"policy": string(c.Policy), "memory": string(c.Memory), "clock": string(c.Clock), "costs": string(c.Costs),
	} {
		require.Contains(t, settings, "\n| `"+field+"` | `"+value+"` | ")
	}
	require.Contains(t, settings, fmt.Sprintf("\n| `bandwidth` | %d | ", c.Bandwidth))
}
