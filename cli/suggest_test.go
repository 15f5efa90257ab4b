package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsSuggestTheNearestName holds every kind of name to its question.
func TestErrorsSuggestTheNearestName(t *testing.T) {
	path := write(t, "t.trace", small)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"compair"}, `unknown command "compair" for "vramyard": did you mean "compare"? want one of`},
		{[]string{"help", "compair"}, `did you mean "compare"?`},
		{[]string{"trace", "inf"}, `unknown command "inf" for "vramyard trace": did you mean "info"?`},
		{[]string{"compare", "--capcity", "1"},
			`unknown flag: --capcity: did you mean --capacity?: see "vramyard compare --help"`},
		{[]string{"compare", "--strategies", "cachin", path},
			`unknown strategy "cachin": did you mean "caching"? want one of`},
		{[]string{"replay", "--strategy", "BFC", path}, `unknown strategy "BFC": did you mean "bfc"?`},
		{[]string{"replay", "--strategy", "torch", path},
			`unknown strategy "torch": did you mean "caching", PyTorch's caching allocator?`},
		{[]string{"replay", "--strategy", "PyTorch", path}, `did you mean "caching", PyTorch's caching allocator?`},
		{[]string{"replay", "--strategy", "TensorFlow", path}, `did you mean "bfc", TensorFlow's best-fit with coalescing?`},
		{[]string{"replay", "--strategy", "pytroch", path},
			`unknown strategy "pytroch": did you mean "caching", PyTorch's caching allocator?`},
		{[]string{"replay", "--strategy", "tensorfow", path}, `did you mean "bfc", TensorFlow's best-fit with coalescing?`},
		{[]string{"whatif", "--card", "12", path}, `unknown flag: --card: did you mean --device, such as "sim:24GiB"?`},
		{[]string{"replay", "--strategy", "bfc", "--capacity", "1GiB", path},
			`unknown flag: --capacity: did you mean --device`},
		{[]string{"whatif", "--grid", "ful", path},
			`--grid: ful: no such file: did you mean "full"? want quick, full or a file`},
		{[]string{"compare", "--capacity", "1000000", path},
			`--capacity: 1000000 bytes are less than 1MiB: want a unit, such as "24GiB", or "1000000B" for bytes`},
		{[]string{"replay", "--strategy", "expandable", path}, `did you mean "caching:expandable"?`},
		{[]string{"replay", "--strategy", "caching:expandible", path},
			`unknown preset "expandible" of caching: did you mean "caching:expandable"?`},
		{[]string{"tune", "--strategy", "bcf", path}, `did you mean "bfc"?`},
		{[]string{"strategies", "bcf"}, `did you mean "bfc"?`},
		{[]string{"replay", "--strategy", "bfc", "--config", `{"allow_grwth":true}`, path},
			`unknown field "allow_grwth": did you mean "allow_growth"?`},
		{[]string{"tune", "--strategy", "bfc", "--settings", "limt", path},
			`setting "limt" has no grid values: want some of`},
		{[]string{"replay", "--strategy", "caching", "--config", `{"conf":"expandable_segment:True"}`, path},
			`did you mean "expandable_segments"?`},
		{[]string{"replay", "--strategy", "bfc", "--device", "sim:a100_40g", path}, `did you mean "sim:a100-40g"?`},
		{[]string{"replay", "--strategy", "bfc", "--device", "rtx4090", path}, `did you mean "sim:rtx4090-24g"?`},
		{[]string{"whatif", "--device", "sim:H100-80G", path}, `did you mean "sim:h100-80g"?`},
		{[]string{"replay", "--strategy", "bfc", "llama7b_lora"},
			`llama7b_lora: no such file: did you mean "meta_llama7b_lora", a trace of the corpus?`},
		{[]string{"bench", "--workloads", "loguniformm"}, `did you mean "loguniform"?`},
		{[]string{"trace", "convert", "--to", "parqet", path, "-"}, `did you mean "parquet"?`},
	} {
		status, stdout, stderr := command(t, c.args...)
		require.Equal(t, exitTrouble, status, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
}

func TestTracesListsTheEmbeddedTraces(t *testing.T) {
	tables, r := withJSON(t, "traces")
	for i, trace := range r.objects(t, "traces") {
		hold(t, tables[0], tables[0].lines[i], trace, map[string]string{
			"trace": "text:name", "events": "count:events", "lower bound": "bytes:lower_bound_bytes",
			"streams":     "count:stream_count",
			"description": "text:description",
		})
	}
	require.Len(t, tables[0].lines, 7)
	require.Contains(t, succeed(t, "traces"), "│ meta_llama7b_fsdp8    │  40287 │   16.08 GiB │       2 │ "+
		"LLaMA-7B, one rank of eight")
}
