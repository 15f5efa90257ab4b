package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/compare"
)

func TestCompareTakesSettings(t *testing.T) {
	path := write(t, "t.trace", small)
	list := ` bfc { "limit" : "64MiB" },bfc,bfc{"limit":"64MiB"}, slab{"class_sizes":[256,512]}`
	r := fromJSON[compare.Report](t, "compare", "--strategies", list, "--json", "-", path)
	var names []string
	for _, run := range r.Runs {
		names = append(names, run.Strategy)
	}
	require.Equal(t, []string{`bfc{"limit":"64MiB"}`, "bfc", `slab{"class_sizes":[256,512]}`}, names)
	r = fromJSON[compare.Report](t, "compare", "--strategies", "bfc", "--config", `{"allow_growth":true}`,
		"--json", "-", path)
	require.Equal(t, "bfc", r.Runs[0].Strategy)
	require.Contains(t, string(r.Runs[0].Config), `"allow_growth": true`)
}

// TestOneStrategyTakesSettings gives the settings behind the name and in --config.
func TestOneStrategyTakesSettings(t *testing.T) {
	path := write(t, "t.trace", small)
	for _, words := range [][]string{{`bfc{"limit":"64MiB"}`}, {"bfc", "--config", `{"limit":"64MiB"}`}} {
		r := fromJSON[struct {
			Strategy string
			Config   json.RawMessage
		}](t, append([]string{"replay", path, "--json", "-", "--strategy"}, words...)...)
		require.Equal(t, words[0], r.Strategy)
		require.Contains(t, string(r.Config), `"limit": 67108864`)
	}
	for list, want := range map[string]string{
		"bfc,tlsf":   `"bfc,tlsf": want one strategy`,
		"":           `"": want one strategy`,
		"nosuch":     `unknown strategy "nosuch": want one of bfc, `,
		`bfc{"x":1}`: `configuration of bfc: json: unknown field "x"`,
	} {
		for _, name := range []string{"replay", "tune"} {
			_, _, stderr := command(t, name, "--strategy", list, path)
			require.Contains(t, stderr, "vramyard: --strategy: "+want)
		}
	}
	_, _, stderr := command(t, "replay", "--strategy", "bfc{}", "--config", "{}", path)
	require.Contains(t, stderr, "--config: bfc has settings in --strategy: want one of the two")
}

func TestWrongSettings(t *testing.T) {
	path := write(t, "t.trace", small)
	for list, want := range map[string]string{
		`bfc,,tlsf`:                 "character 5: empty item: want the name of a strategy between commas",
		`tlsf,bfc{bad`:              "configuration of bfc, character 10: invalid character 'b'",
		`tlsf,bfc{"limit":1x}`:      "configuration of bfc, character 19: invalid character 'x'",
		`bfc{"limit":"1GiB"`:        "configuration of bfc, character 19: the JSON object does not end",
		`bfc{}tlsf`:                 "configuration of bfc, character 6: want a comma after the object",
		`tlsf,{"limit":"1GiB"}`:     "character 6: want the name of a strategy before its settings",
		`bfc{"limt":"1GiB"}`:        `configuration of bfc: json: unknown field "limt": did you mean "limit"?`,
		`bfc:growth{"limit":12}`:    "configuration of bfc:growth: limit: 12 bytes are less than 1MiB",
		`bfc{"limit":"1GiB"},slabb`: `unknown strategy "slabb"`,
	} {
		for _, name := range []string{"compare", "view"} {
			status, stdout, stderr := command(t, name, "--strategies", list, path)
			require.Equal(t, exitTrouble, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "vramyard: --strategies: "+want)
		}
	}
	for config, want := range map[string]string{
		``:              `invalid argument "" for "--config" flag: want a JSON object, such as {"limit":"16GiB"}`,
		`limit=4`:       `want a JSON object, such as {"limit":"16GiB"}`,
		`{"limit`:       "character 8: the JSON object does not end",
		`{} x`:          "text after the JSON object",
		`{"x":1}`:       `configuration of bfc: json: unknown field "x": want one of allocation_ids, allow_growth`,
		`{"limt":1}`:    `configuration of bfc: json: unknown field "limt"`,
		`{"limit": 12}`: "limit: 12 bytes are less than 1MiB",
	} {
		for _, words := range [][]string{{"compare", path, "--strategies"}, {"check", "--strategies"},
			{"replay", path, "--strategy"}, {"tune", path, "--strategy"}} {
			status, _, stderr := command(t, append(words, "bfc", "--config", config)...)
			require.Equal(t, exitTrouble, status)
			require.Contains(t, stderr, "--config")
			require.Contains(t, stderr, want)
		}
	}
	_, _, stderr := command(t, "compare", "--config", "{}", path)
	require.Contains(t, stderr,
		`--config: 17 strategies are named: want one, or settings in --strategies, such as bfc{"limit":"16GiB"}`)
	_, _, stderr = command(t, "compare", "--strategies", "bfc{}", "--config", "{}", path)
	require.Contains(t, stderr, "--config: bfc has settings in --strategies: want one of the two")
}
