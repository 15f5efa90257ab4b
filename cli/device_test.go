package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

func TestDevicesLists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	out := succeed(t, "devices", "--json", file)
	for _, want := range []string{"sim:h100-80g", "NVIDIA H100 SXM", "79.19 GiB", "3350 GB/s", "sim:24GiB"} {
		require.Contains(t, out, want)
	}
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var l deviceList
	require.NoError(t, json.Unmarshal(raw, &l))
	require.Equal(t, devicesSchema, l.Schema)
	require.Equal(t, sim.Cards(), l.Cards)
	require.Len(t, l.Costs, int(device.NumCalls))
	require.Equal(t, "reserve", l.Costs[0].Call)
	require.NotZero(t, l.Costs[0].Base)
	require.True(t, json.Valid([]byte(succeed(t, "devices", "--json", "-"))))
}

// deviceCommands are the commands with a flag --device, as short as they can be.
func deviceCommands(trace string) map[string][]string {
	return map[string][]string{
		"compare": {"compare", "--strategies", "bfc:growth", trace},
		"replay":  {"replay", "--strategy", "bfc:growth", trace},
		"tune":    {"tune", "--strategy", "bfc:growth", "--settings", "mended", trace},
		"check":   {"check", "--strategies", "bfc:growth", "--tests", "5"},
		"bench":   benching("--strategies", "bfc:growth", "--workloads", "w1", "--live", "20"),
	}
}

func TestDeviceIsTakenByName(t *testing.T) {
	for name, args := range deviceCommands(write(t, "t.trace", small)) {
		for _, spec := range []string{"sim", "sim:24GiB", "sim:t4-16g"} {
			require.NotEmpty(t, succeed(t, append(args, "--device", spec)...), name)
		}
	}
}

func TestWrongDevices(t *testing.T) {
	path := write(t, "t.trace", small)
	for name, args := range deviceCommands(path) {
		for spec, want := range map[string]string{
			"":         `--device: device "": (there are simulated devices only: want sim, sim:SIZE|want "sim", or "sim:24GiB" .* "cuda:0")`,
			"gpu:0":    `--device: device "gpu:0": (there are simulated devices only: want sim, sim:SIZE|want "sim", or "sim:24GiB" .* "cuda:0")`,
			"sim:h100": `--device: device "sim:h100": no such card: did you mean "sim:h100-94g"\? want sim, sim:SIZE such as sim:24GiB, or sim:CARD with one of b200-180g, `,
			"sim:0":    `--device: device "sim:0": want more than 0 bytes`,
		} {
			status, stdout, stderr := command(t, append(args, "--device", spec)...)
			require.Equal(t, exitTrouble, status, "%s: %s", name, stderr)
			require.Empty(t, stdout)
			require.Regexp(t, want, stderr)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		}
	}
	for _, args := range [][]string{
		{"compare", path, "--sim", "{}"},
		{"replay", "--strategy", "bfc", path, "--sim", `{"charge":512}`},
		{"tune", "--strategy", "bfc", path, "--sim", "{}"},
	} {
		status, stdout, stderr := command(t, append(args, "--device", "sim")...)
		require.Equal(t, exitTrouble, status)
		require.Empty(t, stdout)
		require.Equal(t, "vramyard: --sim: --device says what the device is: want one of the two\n", stderr)
	}
	status, _, stderr := command(t, "check", "--planted", "--device", "sim")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--device: not with --planted")
}

// TestDeviceGivesTheCapacity also checks that --capacity counts more.
func TestDeviceGivesTheCapacity(t *testing.T) {
	path := write(t, "t.trace", small)
	type report struct {
		Device map[string]any
		Runs   []struct {
			Device device.Size `json:"device_bytes"`
		}
	}
	measured := func(args ...string) report {
		var r report
		require.NoError(t, json.Unmarshal([]byte(succeed(t, append(args, "--json", "-")...)), &r))
		require.EqualValues(t, 2<<20, r.Device["charge"])
		return r
	}
	compare := []string{"compare", "--strategies", "bfc:growth", path, "--device", "sim:t4-16g"}
	require.Equal(t, 15102*device.MiB, measured(compare...).Runs[0].Device)
	require.Equal(t, device.GiB, measured(append(compare, "--capacity", "1GiB")...).Runs[0].Device)
	bench := benching("--strategies", "bfc:growth", "--workloads", "w1", "--live", "20", "--device", "sim:t4-16g")
	require.Equal(t, 15102*device.MiB, measured(bench...).Runs[0].Device)
	require.Equal(t, device.GiB, measured(append(bench, "--capacity", "1GiB")...).Runs[0].Device)

	out := succeed(t, "replay", "--strategy", "bfc:growth", "--device", "sim:4KiB", path)
	require.Contains(t, out, "the only failure")
	require.Contains(t, out, "device free 0 B")
}

// TestSizesThatLackTheirUnitAreRefused gives bare numbers and decimal units wherever the size of a
// device is given.
func TestSizesThatLackTheirUnitAreRefused(t *testing.T) {
	path := write(t, "t.trace", small)
	const bare, decimal = `24 bytes are less than 1MiB: did you mean "24GiB", or "24B" for bytes?`,
		`size "24GB": units are powers of 1024: did you mean "24GiB"?`
	for _, c := range []struct {
		args   []string
		prefix string
	}{
		{[]string{"compare", path, "--capacity", "%s"}, "--capacity: "},
		{[]string{"bench", "--capacity", "%s"}, "--capacity: "},
		{[]string{"offline", path, "--capacity", "%s"}, "--capacity: "},
		{[]string{"compare", path, "--device", "sim:%s"}, `--device: device "sim:%s": `},
		{[]string{"whatif", path, "--device", "sim:%s"}, `--device: device "sim:%s": `},
		{[]string{"tune", "--strategy", "bfc", path, "--device", "sim:%s"}, `--device: device "sim:%s": `},
		{[]string{"view", path, "--no-browser", "--device", "sim:%s"}, `--device: device "sim:%s": `},
		{[]string{"replay", "--strategy", "bfc", path, "--device", "sim:%s"}, `--device: device "sim:%s": `},
		{[]string{"replay", "--strategy", "bfc", path, "--device", "cuda:0:%s"}, `--device: device "cuda:0:%s": `},
		{[]string{"replay", "--strategy", "bfc", path, "--sim", `{"capacity":"%s"}`}, "--sim: "},
		{[]string{"replay", "--strategy", "bfc", path, "--config", `{"limit":"%s"}`}, ""},
		{[]string{"check", "--strategies", "bfc", "--config", `{"limit":"%s"}`}, ""},
		{[]string{"tune", "--strategy", "bfc", path, "--config", `{"limit":"%s"}`}, ""},
	} {
		for size, want := range map[string]string{"24": bare, "24GB": decimal} {
			args := slices.Clone(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "%s", size)
			}
			status, stdout, stderr := command(t, args...)
			require.Equal(t, exitTrouble, status, args)
			require.Empty(t, stdout)
			require.True(t, strings.HasPrefix(stderr, "vramyard: "+strings.ReplaceAll(c.prefix, "%s", size)), stderr)
			require.Contains(t, stderr, want)
		}
	}
	_, _, stderr := command(t, "replay", "--strategy", "bfc", path, "--sim", `{"capacity":24}`)
	require.Equal(t, "vramyard: --sim: capacity: "+bare+"\n", stderr)
	_, _, stderr = command(t, "replay", "--strategy", "bfc", path, "--config", `{"limit":24}`)
	require.Equal(t, `vramyard: replay: invalid argument "{\"limit\":24}" for "--config" flag: limit: `+bare+
		`: see "vramyard replay --help"`+"\n", stderr)
	succeed(t, "compare", path, "--strategies", "bfc", "--capacity", "512KiB")
	succeed(t, "replay", "--strategy", "bfc", path, "--sim", `{"capacity":1048576}`)
}
