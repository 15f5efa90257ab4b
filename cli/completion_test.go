package cli

import (
	"strings"
	"testing"

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
