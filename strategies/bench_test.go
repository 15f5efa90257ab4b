package strategies_test

import (
	"encoding/json"
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// BenchmarkSteady times a pair of Free and Alloc in every strategy with 1e3 to 1e6 live
// blocks, and shows the memory beside the time:
//
//	go test ./strategies -run '^$' -bench Steady -count 10
func BenchmarkSteady(b *testing.B) {
	propstest.Bench(b, subjects(b, strategies.All().Default(setting.Compared)...)...)
}

// million makes BenchmarkYardstick go up to a million live blocks, which takes gigabytes.
var million = flag.Bool("million", false, "benchmarks of W1 with 1e6 live blocks, too")

// BenchmarkYardstick times every strategy on the workloads of docs/workloads.md, as "vramyard
// bench" does, in a form that benchstat compares:
//
//	go test ./strategies -run '^$' -bench 'Yardstick/strategy=tlsf/workload=w1' -count 10
func BenchmarkYardstick(b *testing.B) {
	w1 := propstest.W1
	if *million {
		w1 = w1.At(append(slices.Clone(w1.Live), 1_000_000)...)
	}
	all := subjects(b, strategies.All().Default(setting.Compared)...)
	for _, w := range []propstest.Workload{w1, propstest.W2, propstest.W3} {
		w.Bench(b, all...)
	}
}

// BenchmarkOwnMix times each of XDL's allocators on the sizes that it was made for and that
// the originals were measured with.
func BenchmarkOwnMix(b *testing.B) {
	own := func(w propstest.Workload, name string) {
		w.At(1_000, 10_000, 100_000).Bench(b, subjects(b, name)...)
	}
	own(propstest.Uniform(16*device.KiB, 16*device.KiB), "buddy:xdl")
	own(propstest.LogUniform(16*device.KiB, device.MiB), "buddy:xdl")
	own(propstest.Uniform(1, 16*device.KiB), "slab")
	own(propstest.Uniform(1, 16*device.KiB), "slab:xdl")
	own(propstest.LogUniform(256, device.MiB), "slab:blaze")
	own(propstest.Uniform(1, 16*device.KiB-1), "slabbuddy:xdl")
	own(propstest.LogUniform(256, device.MiB), "slabbuddy:xdl")
	own(propstest.LogUniform(256, device.MiB), "slabbuddy")
}

// subjects returns the named strategies.
func subjects(b *testing.B, names ...string) (all []props.Subject) {
	// BFC without growth writes nothing in proportion to its limit, so one that holds the
	// largest case serves them all.
	config := map[string]string{"bfc": `{"limit":"1TiB"}`, "bfc:growth": `{"limit":"1TiB"}`}
	for _, name := range names {
		s, err := strategies.All().Lookup(name, json.RawMessage(config[name]))
		require.NoError(b, err)
		all = append(all, props.SubjectOfSetup(s, sim.Config{}))
	}
	return all
}
