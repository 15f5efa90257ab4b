package strategies_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/strategies"
)

// TestExportsOfPresets holds what can be told to users of frameworks, so that no preset is called a
// setting that is none.
func TestExportsOfPresets(t *testing.T) {
	const driver = "PyTorch PYTORCH_ALLOC_CONF=backend:cudaMallocAsync; TensorFlow TF_GPU_ALLOCATOR=cuda_malloc_async; " +
		"JAX XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"
	want := map[string]string{
		"bfc":            "TensorFlow TF_ENABLE_GPU_GARBAGE_COLLECTION=false",
		"bfc:tensorflow": "TensorFlow",
		"bfc:growth":     "TensorFlow TF_FORCE_GPU_ALLOW_GROWTH=true TF_ENABLE_GPU_GARBAGE_COLLECTION=false",
		"bfc:gc":         "TensorFlow TF_FORCE_GPU_ALLOW_GROWTH=true",
		"bfc:jax":        "JAX; TensorFlow TF_ENABLE_GPU_GARBAGE_COLLECTION=false per_process_gpu_memory_fraction=0.75",
		"bfc:jax-growth": "JAX XLA_PYTHON_CLIENT_PREALLOCATE=false; TensorFlow TF_FORCE_GPU_ALLOW_GROWTH=true " +
			"TF_ENABLE_GPU_GARBAGE_COLLECTION=false per_process_gpu_memory_fraction=0.75",
		"direct":             "JAX XLA_PYTHON_CLIENT_ALLOCATOR=platform; TensorFlow TF_GPU_ALLOCATOR=cuda_malloc",
		"caching":            "PyTorch",
		"caching:expandable": "PyTorch PYTORCH_ALLOC_CONF=expandable_segments:True",
		"caching:split":      "PyTorch PYTORCH_ALLOC_CONF=max_split_size_mb:128",
		"caching:2.6":        "PyTorch",
		"caching:2.12":       "PyTorch",
		"caching:2.13":       "PyTorch",
		"async:keep":         driver,
		"async:tensorflow":   driver,
	}
	got := map[string]string{}
	for _, name := range strategies.All().Names() {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		var texts []string
		for _, e := range s.Exports() {
			texts = append(texts, strings.Join(slices.Concat([]string{e.Framework}, e.Environment, e.Options), " "))
		}
		if len(texts) > 0 {
			got[name] = strings.Join(texts, "; ")
		}
	}
	require.Equal(t, want, got)
}
