package torch_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// unwound are the innermost frames that every stack of stacks="all" has.
const unwound = `?? 0 torch::unwind::unwind()
?? 0 torch::CapturedTraceback::gather(bool, bool, bool)
memory_snapshot.cpp 0 torch::cuda::(anonymous namespace)::gather_with_cpp()
CUDACachingAllocator.cpp 0 c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)
?? 0 at::detail::empty_cuda(c10::ArrayRef<long>, c10::TensorOptions const&)
`

// TestFramesShowWhatAReaderNeeds shows stacks of Python, of Python and C++, and of C++ alone. A
// line is a file, a line and a function.
func TestFramesShowWhatAReaderNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		stack string
		want  []string
		site  string // the first line unless it is given
	}{
		"Python": {"model.py 54 forward\ntrain.py 9 <module>\n", []string{"model.py:54 forward", "train.py:9 <module>"}, ""},
		"all": {unwound + `?? 0 at::_ops::mul_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)
VariableType_0.cpp 0 torch::autograd::VariableType::(anonymous namespace)::mul_Tensor(c10::DispatchKeySet)
?? 0 at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)
?? 0 PyNumber_Multiply
/srv/model.py 147 forward
?? 0 _PyEval_EvalFrameDefault
/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py 1790 _call_impl
?? 0 _PyObject_Call_Prepend
/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py 1779 _wrapped_call_impl
?? 0 _PyRun_SimpleFileObject
?? 0 __libc_start_main
?? 0 _start
/srv/train.py 9 <module>
`, []string{
			"/srv/model.py:147 forward [aten::mul_Tensor]",
			"torch/nn/modules/module.py:1790 _call_impl (+1 in torch)", "/srv/train.py:9 <module>",
		}, ""},
		"a program's file is named like a library's": {
			"/opt/venv/lib/python3.12/site-packages/torch/x.py 1 f\ntorch/x.py 1 f\n", []string{"torch/x.py:1 f"}, "",
		},
		"a library is no call site": {unwound + `?? 0 at::_ops::addmm::call(at::Tensor const&)
/usr/lib/python3/dist-packages/torch/nn/modules/linear.py 125 forward
/usr/lib/python3.11/contextlib.py 81 inner
C:\venv\Lib\site-packages\torch\nn\modules\module.py 1790 _call_impl
C:\venv\Lib\site-packages\transformers\models\llama\modeling_llama.py 180 forward
train.py 9 <module>
`, []string{
			"torch/nn/modules/linear.py:125 forward [aten::addmm] (+2 in torch)",
			"transformers/models/llama/modeling_llama.py:180 forward", "train.py:9 <module>",
		}, "transformers/models/llama/modeling_llama.py:180 forward ← train.py:9 <module>"},
		"backward": {unwound + `?? 0 at::_ops::empty::call(c10::ArrayRef<long>)
?? 0 at::_ops::div_Scalar::call(at::Tensor const&, c10::Scalar const&)
?? 0 torch::autograd::generated::MeanBackward0::apply(std::vector<at::Tensor>&&)
?? 0 torch::autograd::Node::operator()(std::vector<at::Tensor>&&)
?? 0 torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)
?? 0 __clone
`, []string{"MeanBackward0 [aten::div_Scalar]"}, ""},
		"C++ alone": {unwound + "serve.cpp 7 mine::serve()\nserve.cpp 20 main\n",
			[]string{"??:0 at::detail::empty_cuda(c10::ArrayRef<long>, c10::TensorOptions const&)", "serve.cpp:7 mine::serve()"},
			""},
		"plumbing":      {"?? 0 torch::unwind::unwind()\n", []string{"??:0 torch::unwind::unwind()"}, ""},
		"library alone": {"/x/site-packages/torch/optim/adam.py 3 step\n", []string{"torch/optim/adam.py:3 step"}, ""},
		"a name alone":  {"chat 0 mlp.up\n", []string{"chat:0 mlp.up"}, ""},
		"none":          {"", nil, ""},
	} {
		s := &torch.Snapshot{}
		in := torch.NewInterner(s)
		var frames []uint32
		for line := range strings.Lines(c.stack) {
			file, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			number, function, _ := strings.Cut(rest, " ")
			n := int64(0)
			for _, digit := range number {
				n = 10*n + int64(digit-'0')
			}
			frames = append(frames, in.Frame(torch.Frame{File: in.String(file), Function: in.String(function), Line: n}))
		}
		lines, site := torch.NewFrames(s).Lines(in.Stack(frames))
		require.Equal(t, c.want, lines, name)
		if c.site == "" && len(lines) > 0 {
			c.site = lines[0]
		}
		require.Equal(t, c.site, site, name)
	}
}

// TestLineOfGeneratedCode reads the line -1, which PyTorch writes as 64 bits without sign.
func TestLineOfGeneratedCode(t *testing.T) {
	s := read(t, []byte(`{"segments": [], "device_traces": [[{"action": "alloc", "addr": 4096, "size": 512, "stream": 0,
		"frames": [{"filename": "fake_tensor.py", "line": 18446744073709551615, "name": "init"}]}]]}`))
	require.Equal(t, int64(-1), s.Frames[1].Line)
}

// TestFramesAreBounded shows stacks that are deeper, and with longer names, than any report needs.
func TestFramesAreBounded(t *testing.T) {
	for _, file := range []string{"deep.py", "deep.cpp", strings.Repeat("é", 10_000) + ".py",
		strings.Repeat("é", 10_000) + ".cpp"} {
		s := &torch.Snapshot{}
		in := torch.NewInterner(s)
		frames := make([]uint32, 60_000)
		for i := range frames {
			frames[i] = in.Frame(torch.Frame{File: in.String(file), Function: in.String("f"), Line: int64(i)})
		}
		lines, site := torch.NewFrames(s).Lines(in.Stack(frames))
		require.LessOrEqual(t, len(lines), 257)
		if len(file) < 100 {
			require.Equal(t, file+":0 f", site)
		}
		for _, line := range lines {
			require.LessOrEqual(t, len(line), 512)
			require.True(t, utf8.ValidString(line))
		}
	}
}
