package whatif_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/direct"
)

func TestGridsMultiplyOut(t *testing.T) {
	setups, err := whatif.ReadGrid(strings.NewReader(`
- strategy: caching
  conf: ["", "expandable_segments:True"]
- strategy: caching
  conf: {max_split_size_mb: [64, 128], roundup_power2_divisions: ["", 8]}
- strategy: async:keep
  config: {region_bytes: [8MiB, 33554432], insert_waits: "off"}
- strategy: bfc
`), strategies.All())
	require.NoError(t, err)
	var got []string
	for _, s := range setups {
		var c struct {
			Conf   string `json:"conf"`
			Region uint64 `json:"region_bytes"`
			Waits  string `json:"insert_waits"`
		}
		text, err := json.Marshal(s.Config)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &c))
		got = append(got, strings.TrimSpace(s.Name+" "+c.Conf+" "+c.Waits))
	}
	require.Equal(t, []string{
		"caching", "caching expandable_segments:True",
		"caching max_split_size_mb:64", "caching max_split_size_mb:64,roundup_power2_divisions:8",
		"caching max_split_size_mb:128", "caching max_split_size_mb:128,roundup_power2_divisions:8",
		"async:keep  off", "async:keep  off", "bfc",
	}, got)
}

func TestWrongGridsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "want at least one strategy",
		"[]":                                     "want at least one strategy",
		"- strategy: cashing\n":                  `line 1, column 13: unknown strategy "cashing"`,
		"- strategy: bfc\n- stratagem: bfc\n":    `line 2, column 3: unknown field "stratagem"`,
		"- conf: a\n":                            "line 1, column 3: want the name of a strategy, or a mapping",
		"- strategy: bfc:none\n":                 `unknown preset "none" of bfc`,
		"- strategy: [bfc]\n":                    "line 1, column 13",
		"strategy: bfc\n":                        "line 1, column 1: want one list of strategies",
		"- strategy: bfc\n  config: {limt: 3}\n": `unknown field "limt"`,
		"- strategy: bfc\n  config: 3\n":         "line 2, column 11: want names with values",
		"- strategy: bfc\n  config: {limit: [[1]]}\n": "line 2, column 19: want a string, a number",
		"- strategy: bfc\n  config: {limit: []}\n":    "line 2, column 19: want a string, a number",
		"- strategy: bfc\n  config: {limit: .inf}\n":  "line 2, column 19: want a string, a number",
		"- strategy: caching\n  conf: expand:True\n":  `unknown key "expand"`,
		"- strategy: caching\n  conf: {a: {b: 1}}\n":  "want a string, a number",
		"- strategy: bfc\n  strategy: bfc\n":          "line 2, column 3",
		"- &a {strategy: bfc}\n- *a\n":                "line 1, column 3: anchors and aliases are not supported",
		"- strategy: \"bfc\n":                         "line 1",
		"- strategy: bfc\n -x":                        "line ",
		"- null\n":                                    "line 1, column 3: want the name of a strategy, or a mapping",
		"! t":                                         "line 1, column 1: want one list of strategies",
		"- bfc\n--- b\n":                              "line 2, column 5: want one document",
		"- {strategy: bfc, [a]: b}\n":                 "line 1, column 19: want the name of a strategy, or a mapping",
		"- strategy: bfc\n  config: {a: 1, a: 2}\n":   "line 2, column 18: \"a\" is given twice",
		"- strategy: bfc\n  config: {<<: {a: 2}}\n":   "line 2, column 16: want a string, a number",
		"- strategy: bfc\n  config: {a: &x 2}\n":      "line 2, column 15: anchors and aliases are not supported",
		strings.Repeat("[", 40000):                    "line 1, column 17: exceeded max depth of 16",
		strings.Repeat("- ", 40000):                   "line 1, column 33: exceeded max depth of 16",
		strings.Repeat("- strategy: bfc\n", 5000):     "more than 4096 settings",
		strings.Repeat("#", 1<<18+1):                  "want at most 262144 bytes",
		"- strategy: bestfit\n  config: {looks: [" + strings.Repeat("1,", 99) + "1], slack: [" + strings.Repeat("8,", 99) +
			"8]}\n": "more than 4096 settings",
	} {
		_, err := whatif.ReadGrid(strings.NewReader(text), strategies.All())
		require.ErrorContains(t, err, want, "%.60q", text)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestGridsOfTheCommandAreLegal(t *testing.T) {
	for file, want := range map[string]int{"quick": 31, "full": 110} {
		text, err := os.ReadFile("../../../cli/grids/" + file + ".yaml")
		require.NoError(t, err)
		setups, err := whatif.ReadGrid(bytes.NewReader(text), strategies.All())
		require.NoError(t, err, file)
		require.GreaterOrEqual(t, len(setups), want, file)
		if file == "quick" {
			require.Len(t, setups, want, file)
		}
	}
}

func TestFitGridFollowsTheCatalogue(t *testing.T) {
	mine := setting.SpecOf("mine", "no presets", direct.New)
	tlsf, _ := strategies.All().Spec("tlsf")
	setups, err := whatif.FitGrid(strings.NewReader("- strategy: caching\n- strategy: tlsf:scan\n- strategy: tlsf:none\n"),
		setting.Catalogue{tlsf, mine})
	require.NoError(t, err)
	var names []string
	for _, s := range setups {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"tlsf:scan", "mine"}, names)
	_, err = whatif.FitGrid(strings.NewReader("{"), strategies.All())
	require.Error(t, err)
}

func FuzzReadGrid(f *testing.F) {
	f.Add("- strategy: caching\n  conf: {max_split_size_mb: [64, 128], roundup_power2_divisions: [\"\", 8]}\n")
	f.Add("- strategy: bfc\n  config: {limit: 3}\n")
	f.Add("! t")
	f.Add("- &a {? [b]: !!int c}\n- *a\n--- |\n d")
	f.Fuzz(func(t *testing.T, text string) {
		setups, err := whatif.ReadGrid(strings.NewReader(text), strategies.All())
		if (err == nil) != (len(setups) > 0) {
			t.Fatalf("%d setups, error %v", len(setups), err)
		}
	})
}

// TestPageShowsAGrid holds the example in docs/whatif.md to what is read.
func TestPageShowsAGrid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/whatif.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	setups, err := whatif.ReadGrid(strings.NewReader(example), strategies.All())
	require.NoError(t, err)
	require.Len(t, setups, 9)
}

// TestGridsLeaveNoStrategyOut looks for every strategy in the quick grid and for every preset, by
// its configuration, in the full one. Strategies in no default list need a forecast or marks, so
// they are in neither.
func TestGridsLeaveNoStrategyOut(t *testing.T) {
	is := func(name string, s setting.Setup) string {
		family, _, _ := strings.Cut(name, ":")
		text, err := json.Marshal(s.Config)
		require.NoError(t, err)
		return family + string(text)
	}
	names := map[string]bool{}
	for _, s := range quick(t) {
		family, _, _ := strings.Cut(s.Name, ":")
		names[family] = true
	}
	text, err := os.ReadFile("../../../cli/grids/full.yaml")
	require.NoError(t, err)
	full, err := whatif.ReadGrid(bytes.NewReader(text), strategies.All())
	require.NoError(t, err)
	configs := map[string]bool{}
	for _, s := range full {
		configs[is(s.Name, s)] = true
	}
	for _, spec := range strategies.All() {
		if spec.Listed()[0].In == setting.Unlisted {
			continue
		}
		require.Contains(t, names, spec.Name)
		for _, p := range spec.Presets {
			name := strings.TrimSuffix(spec.Name+":"+p.Name, ":")
			s, err := strategies.All().Lookup(name, nil)
			require.NoError(t, err)
			require.True(t, configs[is(name, s)], name)
		}
	}
}
