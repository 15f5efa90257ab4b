//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// misbehaving compiles the plug-ins of the package's tests, each of which does what it may not at
// its seventh request.
func misbehaving(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("c++"); err != nil {
		t.Skip("plug-ins are tested where there is a C++ compiler: ", err)
	}
	out := filepath.Join(t.TempDir(), "faults.so")
	text, err := exec.Command("cc", "-shared", "-fPIC", "-w", "-o", out, "../strategies/plugin/testdata/faults.c",
		"-pthread").CombinedOutput()
	require.NoError(t, err, string(text))
	return "plugin:" + out + "?free=direct_free&alloc="
}

// tenRequests is a trace of ten requests without a free.
func tenRequests(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ten.trace")
	text := "# vramyard-trace 1\n"
	for id := range 10 {
		text += fmt.Sprintf("a %d 4096\n", id+1)
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAPluginIsContained(t *testing.T) {
	name, trace := misbehaving(t), tenRequests(t)
	for symbol, want := range map[string]string{
		"crash":   `event 6: allocation \d+ of 4096 bytes: plugin: call 7, crash\(4096 bytes, device 0, stream 0\): killed by SIGSEGV at 0x10\n$`,
		"leaves":  `event 6: allocation \d+ of 4096 bytes: plugin: call 7, leaves\(4096 bytes, device 0, stream 0\): exited with status 3\n$`,
		"overlap": `event 6: allocation \d+ of 4096 bytes: plugin: call 7, overlap\(.*\): it returned 0x[0-9a-f]+: 4096 bytes there overlap live block 0x[0-9a-f]+ of 4096 bytes\n$`,
	} {
		for _, args := range [][]string{
			{"replay", "--strategy", name + symbol, trace},
			{"compare", "--strategies", "bfc," + name + symbol, trace},
		} {
			status, out, errs := command(t, args...)
			require.Equal(t, exitTrouble, status, errs)
			require.Empty(t, out)
			require.Regexp(t, `^vramyard: .*`+want, errs)
		}
	}
}

func TestCheckShrinksTheFailureOfAPlugin(t *testing.T) {
	name := misbehaving(t)
	status, out, errs := command(t, "check", "--strategies", name+"crash", "--tests", "3", "--out", t.TempDir())
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "I35 (no panic)")
	require.Contains(t, out, "killed by SIGSEGV at 0x10")
	require.Contains(t, out, "vramyard check --strategies '"+name+"crash'")
}

func TestTuneAndWhatifTakeAPlugin(t *testing.T) {
	name, trace := misbehaving(t), tenRequests(t)
	out := succeed(t, "tune", "--strategy", name+"direct_alloc", trace)
	require.Contains(t, out, "\nvramyard replay --strategy '"+name+"direct_alloc' --config '{}' TRACE\n",
		"as a shell takes it")
	grid := func(symbol string) string {
		return write(t, "grid.yaml", "- strategy: \""+name+symbol+"\"\n- strategy: caching\n")
	}
	out = succeed(t, "whatif", "--device", "sim:64MiB", "--grid", grid("direct_alloc"), trace)
	require.Contains(t, out, "│ "+name+"direct_alloc")
	for _, args := range [][]string{
		{"tune", "--strategy", name + "crash", trace}, {"whatif", "--device", "sim:64MiB", "--grid", grid("crash"), trace},
	} {
		status, out, errs := command(t, args...)
		require.Equal(t, exitTrouble, status, errs)
		require.Empty(t, out)
		require.Regexp(t,
			`^vramyard: .*: plugin: call 7, crash\(4096 bytes, device 0, stream 0\): killed by SIGSEGV at 0x10\n$`, errs)
	}
}

func TestStrategiesDescribesThePluginSyntax(t *testing.T) {
	require.Contains(t, succeed(t, "strategies"), "plugin:PATH?alloc=NAME&free=NAME")
	text := succeed(t, "strategies", "plugin")
	require.Contains(t, text, "record_stream")
	require.NotContains(t, text, "preset")
}

func TestPluginsAreTimedInTheirProcess(t *testing.T) {
	name := misbehaving(t) + "direct_alloc"
	file := filepath.Join(t.TempDir(), "bench.json")
	status, out, errs := command(t, "bench", "--strategies", "tlsf,"+name, "--workloads", "w1", "--live", "100",
		"--pairs", "200",
		"--rounds", "1", "--json", file)
	require.Equal(t, exitDone, status, errs)
	require.Contains(t, out, name+" †")
	require.Contains(t, out, "† is timed in its own process")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var r struct {
		Runs []struct {
			SelfTimed bool `json:"self_timed"`
			Config    map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, []bool{false, true}, []bool{r.Runs[0].SelfTimed, r.Runs[1].SelfTimed})
	require.Len(t, r.Runs[1].Config["sha256"], 64)
}
