package standin

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sanitized are the options with which native code is tested.
var sanitized = []string{"-std=c++17", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Inative"}

// TestNativeCode runs the programs of testdata/native over the sources that they test, with
// sanitizers.
func TestNativeCode(t *testing.T) {
	t.Parallel()
	compiler, err := Compiler()
	if err != nil {
		t.Skip("native code is tested where there is a C++ compiler: ", err)
	}
	build := func(out string, sources ...string) ([]byte, error) {
		args := slices.Concat(compiler[1:], sanitized, []string{"-o", out}, sources, []string{"-lpthread", "-ldl"})
		return exec.Command(compiler[0], args...).CombinedOutput()
	}
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.cc")
	require.NoError(t, os.WriteFile(empty, []byte("int main() {}\n"), 0o600))
	if text, err := build(filepath.Join(dir, "empty"), empty); err != nil {
		t.Skip("native code is tested where the compiler has sanitizers: ", string(text))
	}
	for name, units := range map[string][]string{
		"contents": {"contents"}, "launch": {"runtime", "launch", "names"}, "dnn": {"dnn", "dnngraph"}, "nccl": {"nccl"},
		"driver": {"driver"}, "stub": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := []string{filepath.Join("testdata", "native", name+".cc")}
			for _, u := range units {
				sources = append(sources, filepath.Join("native", u+".cc"))
			}
			program := filepath.Join(t.TempDir(), name)
			text, err := build(program, sources...)
			require.NoError(t, err, string(text))
			text, err = exec.Command(program, program+".table").CombinedOutput()
			require.NoError(t, err, string(text))
		})
	}
}

// TestPythonModules runs the tests of vramyard.cudnn_table, with the stand-in in cuDNN's place, and
// of vramyard.reads.
func TestPythonModules(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "python")
	// A kept result depends on the files that are read here.
	for _, file := range []string{
		"vramyard/cudnn_table.py", "native/cudnn_table.cc", "tests/cudnn_table_test.py", "vramyard/reads.py",
		"tests/reads_test.py",
	} {
		_, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
	}
	compiler, err := Compiler()
	if err != nil {
		t.Skip("the modules are tested where there is a C++ compiler: ", err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the modules are tested where there is Python: ", err)
	}
	c := exec.Command(python, "-m", "unittest", "tests.cudnn_table_test", "tests.reads_test")
	c.Dir = folder
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "CXX="+strings.Join(compiler, " "))
	text, err := c.CombinedOutput()
	require.NoError(t, err, string(text))
}
