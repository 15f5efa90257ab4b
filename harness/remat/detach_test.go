package remat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// fan is a program: x is made of a weight, eight tensors are made of x, and x is released. The
// eight are summed up pair by pair. All have one byte.
func fan(t *testing.T) *remat.Schedule {
	t.Helper()
	var b remat.Builder
	call := func(args ...remat.Tensor) remat.Tensor {
		made, err := b.Call(remat.Call{Name: "f", Cost: 1, Args: args,
			Outputs: []remat.Output{{Size: 1, Alias: remat.NoAlias}}})
		require.NoError(t, err)
		return made
	}
	weight, err := b.Constant(1)
	require.NoError(t, err)
	x := call(weight)
	var all []remat.Tensor
	for range 8 {
		all = append(all, call(x))
	}
	require.NoError(t, b.Release(x))
	sum := all[0]
	for _, one := range all[1:] {
		next := call(sum, one)
		require.NoError(t, b.Release(sum))
		require.NoError(t, b.Release(one))
		sum = next
	}
	require.NoError(t, b.Release(sum))
	return b.Schedule()
}

// TestTrueDeletionNeedsMoreMemory compares the least budgets of fake deletion, which keeps x
// recomputable, and of true deletion, which keeps all eight tensors made of x.
func TestTrueDeletionNeedsMoreMemory(t *testing.T) {
	s := fan(t)
	for liveness, want := range map[string]device.Size{
		"eager": 4, "mge-refcount": 4, // the weight, two inputs and their sum
		"banish": 4,  // x waits until no evicted tensor depends on it
		"detach": 10, // the weight, the eight tensors, and x or a sum
	} {
		least := device.Size(1)
		for ; ; least++ {
			res, err := remat.Run(s, &remat.Counter{Budget: least}, remat.Config{Heuristic: "eq", Liveness: liveness})
			require.NoError(t, err)
			if res.Verdict == remat.OK {
				break
			}
		}
		require.Equal(t, want, least, liveness)
	}
}

// TestDetachRestoresConsumersFirst evicts a consumer by hand and releases its input.
func TestDetachRestoresConsumersFirst(t *testing.T) {
	log := `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"1"}
{"INSTRUCTION":"CALL","NAME":"f","ARGS":["w"],"RESULT":["x"],"TIME":"10"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"1"}
{"INSTRUCTION":"ALIAS","NAME":"x","ALIAS":"-1"}
{"INSTRUCTION":"CALL","NAME":"g","ARGS":["x"],"RESULT":["y"],"TIME":"100"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"1"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
{"INSTRUCTION":"DROP","NAME":"w"}
{"INSTRUCTION":"DROP","NAME":"y"}
{"INSTRUCTION":"DROP","NAME":"y"}
{"INSTRUCTION":"RELEASE","NAME":"x"}
{"INSTRUCTION":"DROP","NAME":"y"}
{"INSTRUCTION":"RELEASE","NAME":"y"}
`
	s, err := remat.Read(strings.NewReader(log), "log", nil)
	require.NoError(t, err)
	for liveness, want := range map[string]int64{
		"detach": 100, // y is remade when x is released, and then kept
		"eager":  0,   // y is not read again
	} {
		res, err := remat.Run(s, &remat.Counter{Budget: 10}, remat.Config{Heuristic: "eq", Liveness: liveness})
		require.NoError(t, err)
		require.Equal(t, remat.OK, res.Verdict)
		require.Equal(t, want, res.RematTime, liveness)
		dropped := map[string]int{"detach": 1, "eager": 1}[liveness]
		require.Equal(t, dropped, res.Evictions[remat.Dropped], "constants, evicted and kept tensors are not dropped")
	}
}

func TestDropsNeedAReferencedName(t *testing.T) {
	const start = `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}` + "\n"
	const x = `{"INSTRUCTION":"CONSTANT","NAME":"x"}` + "\n" + `{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"1"}` + "\n"
	for log, want := range map[string]string{
		`{"INSTRUCTION":"DROP","NAME":"x"}`: `log:2: "x" is not defined`,
		x + `{"INSTRUCTION":"RELEASE","NAME":"x"}` + "\n" + `{"INSTRUCTION":"DROP","NAME":"x"}`: `log:5: "x": the tensor has ` +
			`no references left`,
		`{"INSTRUCTION":"DROP"}`: "log:2: DROP without NAME",
	} {
		_, err := remat.Read(strings.NewReader(start+log), "log", nil)
		require.EqualError(t, err, want)
	}
}
