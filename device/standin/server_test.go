package standin

import (
	"encoding/binary"
	"net"
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

// TestProcessesShareADevice takes a context for each process but the first, and adds the memory of
// all processes up.
func TestProcessesShareADevice(t *testing.T) {
	t.Parallel()
	const context = 100 * device.MiB
	d, err := sim.New(sim.Config{Capacity: device.GiB})
	require.NoError(t, err)
	var last Event
	s, err := Listen(filepath.Join(t.TempDir(), "socket"), Config{
		Devices: []Simulated{{Source: d}}, Context: context, Watch: func(e Event) { last = e },
	})
	require.NoError(t, err)
	type client struct {
		line net.Conn
		done chan struct{}
	}
	connect := func(number uint64) client {
		here, there := net.Pipe()
		c := client{here, make(chan struct{})}
		go func() {
			s.serve(there)
			close(c.done)
		}()
		require.NoError(t, binary.Write(here, binary.NativeEndian, []uint64{protocol, number}))
		require.NoError(t, binary.Read(here, binary.NativeEndian, &hello{}))
		require.NoError(t, binary.Read(here, binary.NativeEndian, &Card{}))
		return c
	}
	ask := func(c client, op Op, arg uint64) (r reply) {
		require.NoError(t, binary.Write(c.line, binary.NativeEndian, []uint64{uint64(op), arg, 0, 0, 0}))
		require.NoError(t, binary.Read(c.line, binary.NativeEndian, &r))
		return r
	}
	take := func(c client, n device.Size) Answer { return ask(c, opReserve, uint64(n)).Answer }
	end := func(c client) {
		require.NoError(t, c.line.Close())
		<-c.done
	}
	free := func(c client) device.Size { return device.Size(ask(c, opInfo, 0).Value[0]) }

	a, b := connect(1), connect(2)
	require.Equal(t, AnswerDone, take(a, 500*device.MiB))
	require.Equal(t, 524*device.MiB, free(b), "a process that takes no memory has no context")
	require.Equal(t, answerOutOfMemory, take(b, 500*device.MiB))
	require.Equal(t, AnswerDone, take(b, 300*device.MiB))
	require.Equal(t, 124*device.MiB, free(a))
	require.Equal(t, Event{
		Process: 2, Kind: Changed, Reserved: 300 * device.MiB, Peak: 300 * device.MiB, All: 800*device.MiB + context,
	}, last)
	end(a)
	require.Equal(t, 724*device.MiB, free(b), "one process is left, whose context the capacity excludes")
	require.Equal(t, AnswerDone, take(b, 600*device.MiB))
	require.Equal(t, 900*device.MiB, last.All)
	c := connect(3)
	require.Equal(t, AnswerDone, take(c, 10*device.MiB))
	end(b)
	end(c)
	require.True(t, d.Usage().Empty())
	require.NoError(t, s.Close())
}
