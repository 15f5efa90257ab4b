package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
)

const settingsPage = "../docs/settings.md"

// TestSettingsPage compares docs/settings.md with the catalogue.
func TestSettingsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Presets and settings\n\n" +
		"<!-- written by go test ./cli -run TestSettingsPage -rewrite -->\n\n" +
		"Every preset and every setting of every strategy; `vramyard strategies NAME` prints the same. Settings are JSON, " +
		"given with `--config` or after a name, and override those of the preset:\n\n" +
		"```\n" +
		"vramyard replay --strategy tlsf --config '{\"quantum\":\"512B\"}' my.trace\n" +
		"vramyard compare --strategies 'tlsf,tlsf{\"quantum\":\"512B\"},tlsf:scan{\"tail\":\"hole\"}' my.trace\n" +
		"```\n\n" +
		"A size is a text with a unit, such as `\"512B\"` or `\"2MiB\"`, or a number of bytes; `yes` and `no` are `true` " +
		"and `false`. The values *worth trying* are those that `vramyard tune` searches.\n")
	for _, s := range everything {
		page := "strategies/" + s.Name + ".md"
		if s.Given != nil {
			page = "plugins.md"
		}
		describeSettings(&b, s, "##", fmt.Sprintf(" [%s](%s) explains it.", page, page))
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(settingsPage, []byte(b.String()), 0o644))
	}
	kept, err := os.ReadFile(settingsPage)
	require.NoError(t, err)
	require.True(t, b.String() == string(kept),
		"docs/settings.md differs from the catalogue: go test ./cli -run TestSettingsPage -rewrite")
}

// describeSettings writes the section of a strategy and those of its originals. more follows its
// first sentence.
func describeSettings(b *strings.Builder, s setting.Spec, level, more string) {
	fmt.Fprintf(b, "\n%s %s\n\n%s.%s\n", level, s.Name, prosed(strings.ToUpper(s.Doc[:1])+s.Doc[1:]), more)
	head := "\n| preset | settings | description |\n|---|---|---|\n"
	for _, p := range s.Presets {
		name, config := s.Name, ""
		if p.Name != "" {
			name += ":" + p.Name
		}
		if p.JSON != "" {
			config = "`" + p.JSON + "`"
		}
		fmt.Fprintf(b, "%s| `%s` | %s | %s |\n", head, name, config, tableCell(p.Doc))
		head = ""
	}
	head = "\n| setting | value | default | worth trying | meaning |\n|---|---|---|---|---|\n"
	for _, k := range s.Knobs {
		var grid []string
		for _, value := range k.Grid {
			grid = append(grid, showValue(k, value))
		}
		fmt.Fprintf(b, "%s| `%s` | %s | %s | %s | %s |\n", head, k.Name, k.Type, tableCell(showValue(k, k.Default)),
			tableCell(strings.Join(grid, ", ")), tableCell(k.Doc))
		head = ""
	}
	for _, o := range s.Originals {
		describeSettings(b, o, level+"#", "")
	}
}
