package vectors_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/vectors"
)

func TestEveryVectorLoads(t *testing.T) {
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.ID()] {
			t.Errorf("%s appears twice", v.ID())
		}
		seen[v.ID()] = true
		t.Run(v.ID(), func(t *testing.T) { check(t, v) })
	}
	if len(all) != 35+68+158+30 {
		t.Errorf("%d vectors, want 35 of BFC, 68 of XDL, 158 of PyTorch and 30 of RMM", len(all))
	}
}

// check loads a vector and compares it with what its manifest says.
func check(t *testing.T, v vectors.Vector) {
	tr, err := v.Trace()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := v.Expected()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ParseConfig(v.Sim); err != nil {
		t.Error(err)
	}
	var allocs, answers, refused int
	for _, e := range tr.Events {
		if e.Kind == trace.Alloc {
			allocs++
		}
	}
	for _, l := range lines {
		fields := strings.Fields(l)
		if _, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
			answers++
			if fields[1] == "OOM" {
				refused++
			}
		}
	}
	if allocs != v.Allocs || answers != allocs {
		t.Errorf("%d allocations and %d answers; the manifest says %d", allocs, answers, v.Allocs)
	}
	if refused != v.Refused {
		t.Errorf("%d refusals; the manifest says %d", refused, v.Refused)
	}
}

func TestOptionsBecomeConfigurations(t *testing.T) {
	for _, want := range []struct{ strategy, id, config, sim string }{
		{"bfc", "bfc/s16_topdown_gc",
			`{"variant":"2024","limit":100663296,"allow_growth":true,"garbage_collection":true,"coalesce_regions":true}`,
			`{"policy":"top-down"}`},
		{"bfc", "bfc/s19_limit_wraparound", `{"variant":"2024","limit":9437696,"allow_growth":true}`,
			`{"capacity":83886080,"round":2097152}`},
		{"bfc", "bfc/v03_spatial", `{"variant":"2026","limit":1048576,"spatial":true}`, `{}`},
		{"buddy", "buddy/A_pow2", `{"compat":"xdl","region_bytes":65536,"block_bytes":256}`,
			`{"capacity":536870912,"round":256,"charge":2097152}`},
		{"slab", "slab/A_pow2", `{"compat":"xdl","region_bytes":65536,"segments":2,"unit_bytes":256}`,
			`{"capacity":67108864,"round":256,"charge":2097152}`},
		{"slabbuddy", "slab_buddy/A_pow2", `{"compat":"xdl","region_bytes":65536,"block_bytes":1024,"segments":2}`,
			`{"capacity":536870912,"round":256,"charge":2097152}`},
		{"slab", "blaze_slab/D_pow2", `{"compat":"blaze","region_bytes":1073741824}`,
			`{"capacity":17179869184,"round":256,"charge":2097152}`},
		{"caching", "torch_2.6/fuzz_02",
			`{"conf":"expandable_segments:True,garbage_collection_threshold:0.2","rules":"2.6","memory_fraction":1}`,
			`{"capacity":100663296,"round":2097152,"charge":2097152}`},
		{"caching", "torch_2.11/micro_spurious_oom", `{"rules":"2.11"}`,
			`{"capacity":67108864,"round":2097152,"charge":2097152}`},
	} {
		list, err := vectors.Of(want.strategy)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(v vectors.Vector) bool { return v.ID() == want.id })
		if i < 0 {
			t.Errorf("%s is not among the vectors of %s", want.id, want.strategy)
			continue
		}
		if v := list[i]; string(v.Config) != want.config || string(v.Sim) != want.sim {
			t.Errorf("%s: config %s, sim %s; want %s, %s", want.id, v.Config, v.Sim, want.config, want.sim)
		}
	}
	if _, err := vectors.Of("nothing"); err == nil {
		t.Error("vectors of an unknown strategy: want an error")
	}
}

func TestExpectedHasNoComments(t *testing.T) {
	list, err := vectors.Of("buddy")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := list[0].Expected()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(lines, func(l string) bool { return l == "" || l[0] == '#' }) {
		t.Error("a comment or a blank line is left")
	}
}
