package standin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// facts are the imports of testdata/program.cc and one name that nothing models.
func facts() Facts {
	return Facts{CUDA: "12.4", Libraries: []Library{{
		SoName: "libcudart.so.12", Version: "libcudart.so.12",
		Names: []string{
			"cudaMalloc", "cudaFree", "cudaMemGetInfo", "cudaMemcpy", "cudaGetDeviceCount", "cudaGetLastError",
			"cudaStreamCreate", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaThreadExchangeStreamCaptureMode",
			"cudaGraphGetNodes", "cudaNotModelled",
		},
	}}}
}

// TestProgram runs a native program over a simulated device.
func TestProgram(t *testing.T) {
	t.Parallel()
	compiler, err := Compiler()
	if err != nil {
		t.Skip("native programs run where there is a C++ compiler: ", err)
	}
	f := facts()
	libraries, err := f.Build()
	require.NoError(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	args := []string{"-o", program, "testdata/program.cc", libraries[len(libraries)-1], "-Wl,--allow-shlib-undefined"}
	text, err := exec.Command(compiler[0], append(compiler[1:], args...)...).CombinedOutput()
	require.NoError(t, err, string(text))

	d, err := sim.New(sim.Config{Capacity: device.GiB, Charge: 2 * device.MiB})
	require.NoError(t, err)
	socket := filepath.Join(dir, "socket")
	s, err := Listen(socket, Config{
		Devices: []Simulated{{d, Card{Memory: uint64(device.GiB), Major: 8}}}, Keep: device.MiB, Base: sim.Base,
	})
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "VRAMYARD_SOCKET="+socket, "LD_PRELOAD="+strings.Join(libraries, ":"))
	text, err = cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	require.NoError(t, s.Close())
	require.Equal(t, `devices 1, granted 0, refused 2, last error 2 then 0
total 1073741824, taken 4194304
copied back: kept
forked: 20
capture 0, allocation in it 900, end 901, graph none
relaxed: allocation 0, end 0, nodes 1
free 0, again 1
new memory at the same address: 
`, string(text))
	require.True(t, d.Usage().Empty(), "the memory of a program that ended is released")
}

// TestRulesCoverEveryName checks that each function of a library has a rule.
func TestRulesCoverEveryName(t *testing.T) {
	t.Parallel()
	all, err := rules()
	require.NoError(t, err)
	for _, want := range []struct{ name, line string }{
		{"cublasSgemm_v2", "DONE(cublasSgemm_v2)\n"},
		{"cublasLtMatmulDescCreate", "CREATES(cublasLtMatmulDescCreate, 0)\n"},
		{"cudaNotModelled", "FAILS(cudaNotModelled, 801)\n"},
		{"anythingElse", "FAILS(anythingElse, 1)\n"},
	} {
		require.Equal(t, "#include \"stub.h\"\n\n"+want.line, stubs([]string{want.name}, all))
	}
}
