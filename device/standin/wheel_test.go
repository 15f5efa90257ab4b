package standin

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// site is a site-packages directory whose objects are built by the C compiler.
type site struct {
	t   *testing.T
	dir string
	cc  string
}

// newSite returns a directory with the Python files of a PyTorch. It skips the test if there is no
// C compiler.
func newSite(t *testing.T) site {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler named cc")
	}
	s := site{t, t.TempDir(), cc}
	s.write("torch/version.py", "from typing import Optional\n__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\n")
	s.write("torch-2.6.0.dist-info/METADATA", "Name: torch\nRequires-Dist: filelock\n"+
		"Requires-Dist: nvidia-cublas-cu12 (==12.4.5.8) ; platform_system == \"Linux\"\n"+
		"Requires-Dist: nvidia-nccl-cu12==2.27.3; platform_system == \"Linux\"\n"+
		"Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.2; platform_system == \"Linux\"\n")
	return s
}

// write creates a file.
func (s site) write(file, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// compile builds a shared object from C source.
func (s site) compile(file, source string, flags ...string) string {
	s.t.Helper()
	c := s.write(file+".c", source)
	out := filepath.Join(s.dir, file)
	cmd := exec.Command(s.cc, append([]string{"-shared", "-fPIC", "-nostdlib", "-o", out, c}, flags...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", cmd, err, text)
	}
	return out
}

// libraries builds the CUDA libraries that the objects are linked with, as NVIDIA's packages do.
func (s site) libraries() (cudart, nccl string) {
	node := s.write("node", "libcudart.so.12 { global: cuda*; local: *; };\n")
	cudart = s.compile("nvidia/cuda_runtime/lib/libcudart.so.12", "void cudaFree(void) {}\nvoid cudaMalloc(void) {}\n",
		"-Wl,-soname,libcudart.so.12", "-Wl,--version-script="+node)
	nccl = s.compile("nvidia/nccl/lib/libnccl.so.2", "void ncclSend(void) {}\n", "-Wl,-soname,libnccl.so.2")
	return cudart, nccl
}

func TestReadObject(t *testing.T) {
	s := newSite(t)
	cudart, nccl := s.libraries()
	path := s.compile("libx.so", "void cudaMalloc(void); void ncclSend(void); void other(void) __attribute__((weak));\n"+
		"void f(void) { cudaMalloc(); ncclSend(); if (other) other(); }\n",
		cudart, nccl, "-Wl,-soname,libx.so.1", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/a:/b")
	got, err := ReadObject(path)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[Import]bool{}
	for _, i := range got.Imports {
		imports[i] = true
	}
	got.Imports = nil
	want := Object{SoName: "libx.so.1", Needed: []string{"libcudart.so.12", "libnccl.so.2"},
		RPath: []string{"$ORIGIN/a", "/b"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	wantImports := map[Import]bool{
		{"cudaMalloc", "libcudart.so.12", "libcudart.so.12"}: true, {Name: "ncclSend"}: true, {Name: "other"}: true,
	}
	if !reflect.DeepEqual(imports, wantImports) {
		t.Errorf("imports %v, want %v", imports, wantImports)
	}
}

func TestScan(t *testing.T) {
	s := newSite(t)
	cudart, nccl := s.libraries()
	s.compile("torch/lib/libtorch_cuda.so", `
void cudaMalloc(void); void ncclSend(void); void nvtxMark(void) {} void cuInit(void);
const char *names[] = {"cuMemCreate", "cuDNN", "xcuMemMap", "nvmlInit_v2", "sm_10 sm_20"};
void f(void) { cudaMalloc(); ncclSend(); nvtxMark(); cuInit(); }`,
		cudart, nccl, "-Wl,-soname,libtorch_cuda.so", "-Wl,--disable-new-dtags,-rpath,$ORIGIN")
	s.compile("torch/lib/libtorch_python.so", `const char flags[] = "sm_50\0h_sm_50 sm_90a compute_90";`,
		"-Wl,--enable-new-dtags,-rpath,/r")
	s.compile("torch/lib/libc10.so", "int c10;")
	s.compile("flash/_C.so", "void cudaFree(void); void f(void) { cudaFree(); }", cudart)
	s.compile("numpy/core.so", "int numpy;")
	s.write("numpy/script.so", "INPUT(libm.so)")
	got, err := Scan(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{
		Torch: "2.6.0+cu124", CUDA: "12.4",
		Requires: []Requirement{{"nvidia-cublas-cu12", "12.4.5.8"}, {"nvidia-nccl-cu12", "2.27.3"},
			{"cuda-toolkit", "13.0.2"}},
		Architectures: []string{"sm_50", "sm_90a", "compute_90"},
		Objects: []ObjectFacts{
			{File: "flash/_C.so", Needed: []string{"libcudart.so.12"}},
			{File: "torch/lib/libc10.so"},
			{File: "torch/lib/libtorch_cuda.so", SoName: "libtorch_cuda.so",
				Needed: []string{"libcudart.so.12", "libnccl.so.2"}, RPath: "$ORIGIN"},
			{File: "torch/lib/libtorch_python.so", RunPath: "/r"},
		},
		Libraries: []Library{
			{SoName: "libcudart.so.12", Version: "libcudart.so.12", Names: []string{"cudaFree", "cudaMalloc"}},
			{SoName: "libnccl.so.2", Names: []string{"ncclSend"}},
		},
		Looked: []string{"cuMemCreate", "nvmlInit_v2"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestScanErrors(t *testing.T) {
	for name, c := range map[string]struct{ version, want string }{
		"no PyTorch": {"", "torch/version.py does not exist: expected a site-packages directory with PyTorch"},
		"no version": {"cuda = '12.4'\n", "torch/version.py: expected a line __version__ = '...'"},
		"no CUDA": {"__version__ = '2.6.0+cpu'\ncuda = None\n",
			"torch/version.py: PyTorch 2.6.0+cpu is built without CUDA: expected a line cuda = '...'"},
		"no objects": {"__version__ = '2.6.0'\ncuda = '12.4'\n",
			"torch/lib: expected a list of GPU architectures in libtorch_python.so"},
	} {
		t.Run(name, func(t *testing.T) {
			s := site{t: t, dir: t.TempDir()}
			if c.version != "" {
				s.write("torch/version.py", c.version)
			}
			_, err := Scan(s.dir)
			if err == nil || !strings.HasSuffix(err.Error(), filepath.FromSlash(c.want)) {
				t.Errorf("got %v, want an error that ends in %q", err, c.want)
			}
		})
	}
}
