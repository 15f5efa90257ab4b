package strategies_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/strategies"
)

// TestExportsOfPresets holds what can be told to users of frameworks, so that no preset is called a
// setting that is none.
func TestExportsOfPresets(t *testing.T) {
	want := map[string]string{
		"bfc":                "TensorFlow TF_ENABLE_GPU_GARBAGE_COLLECTION=false",
		"bfc:tensorflow":     "TensorFlow",
		"bfc:growth":         "TensorFlow TF_FORCE_GPU_ALLOW_GROWTH=true TF_ENABLE_GPU_GARBAGE_COLLECTION=false",
		"bfc:gc":             "TensorFlow TF_FORCE_GPU_ALLOW_GROWTH=true",
		"bfc:jax":            "JAX",
		"bfc:jax-growth":     "JAX XLA_PYTHON_CLIENT_PREALLOCATE=false",
		"caching":            "PyTorch",
		"caching:expandable": "PyTorch PYTORCH_ALLOC_CONF=expandable_segments:True",
		"caching:split":      "PyTorch PYTORCH_ALLOC_CONF=max_split_size_mb:128",
		"caching:2.6":        "PyTorch",
		"caching:2.12":       "PyTorch",
		"caching:2.13":       "PyTorch",
		"async:keep":         "PyTorch PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
		"async:tensorflow":   "PyTorch PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
	}
	got := map[string]string{}
	for _, name := range strategies.All().Names() {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		if e, ok := s.Export(); ok {
			got[name] = strings.Join(append([]string{e.Framework}, e.Environment...), " ")
		}
	}
	require.Equal(t, want, got)
}
