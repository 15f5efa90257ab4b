package direct

import "github.com/vramyard/vramyard/alloc/setting"

// Config of direct allocation: it has no settings.
type Config struct{}

// Baseline implements [setting.BaselineConfig]: nothing is cached, so direct always holds least.
func (Config) Baseline() bool { return true }

// Unbound implements [setting.UnboundConfig]: the capacity only decides which requests are refused.
func (Config) Unbound() bool { return true }

// Exports implements [setting.ExportedConfig]: JAX's allocator platform and TensorFlow's
// cuda_malloc call the device for every block.
//
// Source: docs/gpu_memory_allocation.rst of JAX, and
// tensorflow/core/common_runtime/gpu/gpu_process_state.cc.
func (Config) Exports() []setting.Export {
	return []setting.Export{
		{Framework: "JAX", Environment: []string{"XLA_PYTHON_CLIENT_ALLOCATOR=platform"}},
		{Framework: "TensorFlow", Environment: []string{"TF_GPU_ALLOCATOR=cuda_malloc"}},
	}
}
