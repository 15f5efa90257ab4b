package plugin_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// object compiles a plug-in of testdata and returns the file. The test is skipped where there is no
// compiler, and says so.
func object(t *testing.T, source string, flags ...string) string {
	t.Helper()
	compiler := "cc"
	if filepath.Ext(source) == ".cc" {
		compiler = "c++"
	}
	if _, err := exec.LookPath("c++"); err != nil {
		t.Skip("plug-ins are tested where there is a C++ compiler: ", err)
	}
	out := filepath.Join(t.TempDir(), "plugin.so")
	args := append([]string{"-shared", "-fPIC", "-O1", "-w", "-o", out, filepath.Join("testdata", source), "-pthread"},
		flags...)
	text, err := exec.Command(compiler, args...).CombinedOutput()
	require.NoError(t, err, string(text))
	return out
}

// named returns the setup of a plug-in as a command line names it.
func named(t *testing.T, path, query string) setting.Setup {
	t.Helper()
	s, err := setting.Catalogue{plugin.Spec()}.Lookup("plugin:"+path+"?"+query, nil)
	require.NoError(t, err)
	return s
}

// started returns an instance over a device of its own.
func started(t *testing.T, path, query string) (alloc.Strategy, *sim.Device) {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: device.GiB})
	require.NoError(t, err)
	s, err := named(t, path, query).New(dev)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.True(t, dev.Usage().Empty())
	})
	return s, dev
}
