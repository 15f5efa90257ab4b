package cli

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// TestShellsCompleteNames asks as the scripts of "vramyard completion" do.
func TestShellsCompleteNames(t *testing.T) {
	for line, want := range map[string][]string{
		"compare --strategies bfc,cach":     {"bfc,caching", "bfc,caching:expandable"},
		"replay --strategy tls":             {"tlsf", "tlsf:growth"},
		"tune --strategy buddy:f":           {"buddy:fibonacci"},
		"whatif --device sim:h100":          {"sim:h100-94g", "sim:h100-80g"},
		"whatif --grid ":                    {"quick", "full"},
		"whatif --serving vllm":             {"vllm", "vllm-sleep"},
		"whatif --permit rdma,graph-":       {"rdma,graph-trees", "rdma,graph-collectives"},
		"compare meta_ll":                   {"meta_llama7b_fsdp8", "meta_llama7b_lora"},
		"trace info cpu_":                   {"cpu_unet_train"},
		"strategies st":                     {"stitch"},
		"bench --workloads w1,log":          {"w1,lognormal", "w1,loguniform"},
		"trace convert --to pa":             {"parquet"},
		"plot --kind trade":                 {"tradeoff"},
		"compare --free-at re":              {"requested"},
		"remat --heuristics eq,lr":          {"eq,lru"},
		"replay --strategy bfc --free-at c": {"completed"},
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		status, stdout, stderr := command(t, args...)
		require.Equal(t, exitDone, status, stderr)
		offers := strings.Split(stdout, "\n")
		for _, w := range want {
			require.Contains(t, offers, w, line)
		}
	}
}

// TestNothingHoldsACommandThatHasEnded looks at a value of the context, which every command has.
// A command also has what it read, and the collector would look through it again in each later one.
func TestNothingHoldsACommandThatHasEnded(t *testing.T) {
	type key struct{}
	value := new([1 << 10]byte)
	held := weak.Make(value)
	ctx := context.WithValue(context.Background(), key{}, value)
	status := run(ctx, everything, []string{"compare", "--strategies", "tlsf", "cpu_unet_train"}, strings.NewReader(""),
		new(bytes.Buffer), new(bytes.Buffer))
	require.Equal(t, exitDone, status)
	runtime.KeepAlive(value)
	runtime.GC()
	require.True(t, held.Value() == nil, "a command is held after its end")
}
