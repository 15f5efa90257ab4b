package nearest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/nearest"
)

func TestNameFindsSlips(t *testing.T) {
	known := []string{"w1", "bfc", "bfc:growth", "buddy", "slab", "slab:xdl", "slabbuddy", "tlsf", "caching",
		"caching:expandable", "stitch"}
	for name, want := range map[string]string{
		"BFC": "bfc", "bcf": "bfc", "cachin": "caching", "cahcing": "caching", "caching-expandable": "caching:expandable",
		"expandable": "caching:expandable", "slabs": "slab", "slab:xld": "slab:xdl", "tslf": "tlsf", "Stich": "stitch",
		"growth":   "bfc:growth",
		"slabuddy": "slabbuddy", "": "", "torch": "", "x": "", "arena": "", "w9": "", strings.Repeat("bfc", 50): "",
	} {
		require.Equal(t, want, nearest.Name(name, known), name)
	}
	require.Empty(t, nearest.Name("bfc", nil))
}

func TestWantListsAllNames(t *testing.T) {
	require.Equal(t, `did you mean "slab"? want one of bfc, slab`, nearest.Want("slob", []string{"bfc", "slab"}))
	require.Equal(t, "want one of bfc, slab", nearest.Want("arena", []string{"bfc", "slab"}))
}

func TestTypoFindsOneEditOrAnotherCase(t *testing.T) {
	known := []string{"torch", "TF_GPU_ALLOCATOR"}
	for name, want := range map[string]string{
		"Torch": "torch", "torh": "torch", "torcch": "torch", "tf_gpu_allocator": "TF_GPU_ALLOCATOR",
		"TF_GPU_ALLOCATER": "TF_GPU_ALLOCATOR", "tf_gpu_allocater": "", "trch2": "", "t": "", "": "", "torch": "",
		strings.Repeat("torch", 50): "",
	} {
		require.Equal(t, want, nearest.Typo(name, known), name)
	}
}
