package bfc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// TestConfTakesTheNamesOfFrameworks sets fields by the variables and options of TensorFlow and JAX.
func TestConfTakesTheNamesOfFrameworks(t *testing.T) {
	for _, c := range []struct {
		base bfc.Config
		conf string
		want bfc.Config
	}{
		{bfc.Config{MemoryFraction: 0.75}, "", bfc.Config{MemoryFraction: 0.75}},
		{bfc.Config{MemoryFraction: 0.75}, "XLA_PYTHON_CLIENT_MEM_FRACTION=.9", bfc.Config{MemoryFraction: 0.9}},
		{bfc.Config{MemoryFraction: 0.75}, " XLA_CLIENT_MEM_FRACTION=0.9  XLA_PYTHON_CLIENT_PREALLOCATE=0 ",
			bfc.Config{MemoryFraction: 0.9, AllowGrowth: true}},
		{bfc.Config{AllowGrowth: true}, "XLA_PYTHON_CLIENT_PREALLOCATE=true", bfc.Config{}},
		{bfc.Config{}, "TF_FORCE_GPU_ALLOW_GROWTH=true", bfc.Config{AllowGrowth: true}},
		{bfc.Config{AllowGrowth: true}, "allow_growth=False TF_ENABLE_GPU_GARBAGE_COLLECTION=true",
			bfc.Config{GarbageCollection: true}},
		{bfc.Config{GarbageCollection: true}, "TF_ENABLE_GPU_GARBAGE_COLLECTION=false", bfc.Config{}},
		{bfc.Config{}, "per_process_gpu_memory_fraction=1 TF_FORCE_GPU_ALLOW_GROWTH=true",
			bfc.Config{MemoryFraction: 1, AllowGrowth: true}},
		{bfc.Config{}, "TF_FORCE_GPU_ALLOW_GROWTH=true allow_growth=False", bfc.Config{AllowGrowth: true}},
		{bfc.Config{}, "allow_growth=True TF_FORCE_GPU_ALLOW_GROWTH=false", bfc.Config{}},
		{bfc.Config{AllowGrowth: true}, "TF_FORCE_GPU_ALLOW_GROWTH=false allow_growth=1", bfc.Config{}},
	} {
		want, err := c.want.WithDefaults()
		require.NoError(t, err)
		c.base.Conf = c.conf
		got, err := c.base.WithDefaults()
		require.NoError(t, err, c.conf)
		require.Equal(t, want, got, c.conf)
	}
}

func TestWrongConfNamesTheSetting(t *testing.T) {
	const share = "want a share of the card above 0, at most 1"
	const exact = "want true or false, TensorFlow ignores other values"
	for conf, want := range map[string]string{
		"XLA_PYTHON_CLIENT_MEM_FRACTION":      `"XLA_PYTHON_CLIENT_MEM_FRACTION": want NAME=VALUE`,
		"XLA_PYTHON_CLIENT_MEM_FRACTION=":     "XLA_PYTHON_CLIENT_MEM_FRACTION=: " + share,
		"XLA_PYTHON_CLIENT_MEM_FRACTION=90":   "XLA_PYTHON_CLIENT_MEM_FRACTION=90: " + share,
		"per_process_gpu_memory_fraction=0":   "per_process_gpu_memory_fraction=0: " + share,
		"per_process_gpu_memory_fraction=NaN": "per_process_gpu_memory_fraction=NaN: " + share,
		"XLA_PYTHON_CLIENT_PREALLOCATE=FALSE": "XLA_PYTHON_CLIENT_PREALLOCATE=FALSE: want true or false",
		"TF_FORCE_GPU_ALLOW_GROWTH=True":      "TF_FORCE_GPU_ALLOW_GROWTH=True: " + exact,
		"TF_FORCE_GPU_ALLOW_GROWTH=1":         "TF_FORCE_GPU_ALLOW_GROWTH=1: " + exact,
		"TF_ENABLE_GPU_GARBAGE_COLLECTION=0":  "TF_ENABLE_GPU_GARBAGE_COLLECTION=0: " + exact,
		"XLA_PYTHON_MEM_FRACTION=0.9":         `unknown setting "XLA_PYTHON_MEM_FRACTION": did you mean`,
		"allow_growth=true allow_growth=true": "allow_growth is given twice",
		"TF_FORCE_GPU_ALLOW_GROWTH=true TF_FORCE_GPU_ALLOW_GROWTH=true": "TF_FORCE_GPU_ALLOW_GROWTH is given " +
			"twice",
		"XLA_CLIENT_MEM_FRACTION=0.9 XLA_PYTHON_CLIENT_MEM_FRACTION=0.9": "XLA_PYTHON_CLIENT_MEM_FRACTION and " +
			"XLA_CLIENT_MEM_FRACTION: want one of them, JAX refuses both",
	} {
		_, err := bfc.Config{Conf: conf}.WithDefaults()
		require.ErrorContains(t, err, "bfc: conf: "+want)
	}
}

// TestExportsAreAcceptedAsConf sets a configuration by what it exports to each framework.
func TestExportsAreAcceptedAsConf(t *testing.T) {
	defaults := map[string]bfc.Config{"JAX": {MemoryFraction: 0.75}, "TensorFlow": {GarbageCollection: true}}
	seen := map[string]int{}
	for _, growth := range []bool{false, true} {
		for _, collection := range []bool{false, true} {
			for _, fraction := range []float64{0, 0.75, 0.9} {
				c, err := bfc.Config{AllowGrowth: growth, GarbageCollection: collection, MemoryFraction: fraction}.WithDefaults()
				require.NoError(t, err)
				for _, e := range c.Exports() {
					again := defaults[e.Framework]
					for _, s := range append(e.Environment, e.Options...) {
						again.Conf += s + " "
					}
					again, err = again.WithDefaults()
					require.NoError(t, err)
					require.Equal(t, c, again, "%+v", e)
					require.Len(t, e.Python, len(e.Options))
					seen[e.Framework]++
				}
			}
		}
	}
	require.Equal(t, map[string]int{"JAX": 4, "TensorFlow": 12}, seen)
	require.Empty(t, bfc.Config{Variant: bfc.V2026}.Exports())
}

// TestTensorFlowsShareIsALineOfPython: no variable sets it.
func TestTensorFlowsShareIsALineOfPython(t *testing.T) {
	c, err := bfc.Config{GarbageCollection: true, MemoryFraction: 0.6}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, []setting.Export{{
		Framework: "TensorFlow", Options: []string{"per_process_gpu_memory_fraction=0.6"},
		Python: []string{
			"session = tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(" +
				"per_process_gpu_memory_fraction=0.6)))",
		},
	}}, c.Exports())
}
