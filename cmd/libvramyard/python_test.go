package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// python returns the interpreter. Without one the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3: the helper for PyTorch cannot be run")
	}
	return path
}

func TestPythonHelper(t *testing.T) {
	interpreter, dir := python(t), directory(t)
	path := filepath.Join(t.TempDir(), "run.trace")
	here, err := os.Getwd()
	require.NoError(t, err)
	c := exec.Command(interpreter, "testdata/fake/use.py", path, filepath.Join(dir, "libvramyard.so"), cudatest.Build(t))
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(here, "../../python")+":"+filepath.Join(here, "testdata/fake"))
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "ok\n", string(out))
	tr, err := trace.Open(path, trace.Options{})
	require.NoError(t, err)
	require.Len(t, tr.Events, 4, "two blocks, a free and a trim")
}

// TestTrainingScript holds the example to what can be checked without PyTorch: it compiles, tells
// how it is used, and names strategies that there are.
func TestTrainingScript(t *testing.T) {
	script := filepath.Join("..", "..", "examples", "pytorch", "train.py")
	c := exec.Command(python(t), script, "--help")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--compare")
	for want, args := range map[string][]string{
		"want at least 1": {"--steps", "0"}, "--compare wants --strategy": {"--compare"},
		"--poison want --strategy": {"--poison"},
		"describe one run":         {"--all", "--trace", "x"},
	} {
		out, err := exec.Command(python(t), append([]string{script}, args...)...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), want)
	}
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	list := regexp.MustCompile(`(?s)STRATEGIES = \[(.*?)\]`).FindSubmatch(text)
	require.NotNil(t, list)
	names := regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(list[1], -1)
	families := map[string]bool{} // those that need no plan
	for _, name := range strategies.All().Default(setting.Compared) {
		family, _, _ := strings.Cut(name, ":")
		families[family] = true
	}
	require.GreaterOrEqual(t, len(names), len(families))
	for _, name := range names {
		_, err := strategies.All().Lookup(string(name[1]), nil)
		require.NoError(t, err)
	}
}
