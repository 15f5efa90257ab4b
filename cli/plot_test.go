package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/chart"
)

var rewrite = flag.Bool("rewrite", false, "write the pictures of docs/plot.md; look at them")

// TestThePageOfPlot runs every line of docs/plot.md and holds its pictures to what they write.
// Those of times are new every time.
func TestThePageOfPlot(t *testing.T) {
	page, err := os.ReadFile("../docs/plot.md")
	require.NoError(t, err)
	pictures, err := filepath.Abs("../docs/plot")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			succeed(t, strings.Fields(line)[1:]...)
		}
	}
	shown := regexp.MustCompile(`\(plot/([a-z]+\.svg)\)`).FindAllStringSubmatch(string(page), -1)
	require.Len(t, shown, 7)
	for _, m := range shown {
		file, err := os.ReadFile(m[1])
		require.NoError(t, err)
		file = regexp.MustCompile(`(?s)<defs>.*?</defs>\n`).ReplaceAll(file, nil) // the font, half a MiB for each
		path := filepath.Join(pictures, m[1])
		if *rewrite {
			require.NoError(t, os.WriteFile(path, file, 0o644))
		}
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(kept, file), "%s is not what the page writes: go test ./cli -run PageOfPlot -rewrite",
			m[1])
	}
	for _, file := range []string{"time.svg", "p99.pdf", "tradeoff.svg"} {
		assert.FileExists(t, file)
	}
}

// TestThePageOfPlotNamesTheResults holds docs/plot.md and the help to what is really taken.
func TestThePageOfPlotNamesTheResults(t *testing.T) {
	text, err := os.ReadFile("../docs/plot.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(string(text)), " ")
	coded := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	for _, k := range chart.Kinds() {
		assert.Contains(t, page, "| `"+k.Name+"` | "+coded(k.Commands)+" | ")
	}
	asJSON, asCSV := chart.Drawn()
	inPage := func(names string) string {
		all := strings.Split(strings.Replace(names, " or ", ", ", 1), ", ")
		return coded(all[:len(all)-1]) + " and `" + all[len(all)-1] + "`"
	}
	assert.Contains(t, page, "`--json` of "+inPage(asJSON)+" writes, and `--csv` of "+inPage(asCSV)+",")
	help := strings.Join(strings.Fields(succeed(t, "plot", "--help")), " ")
	assert.Contains(t, help, "--json of "+asJSON+" writes, or --csv of "+asCSV+";")
	for _, r := range chart.Results() {
		assert.Contains(t, page, "`"+r.Command+"`")
	}
}

func TestPlotRefusesWhatIsWrong(t *testing.T) {
	a, _ := results(t)
	out := filepath.Join(t.TempDir(), "x.pdf")
	for want, args := range map[string][]string{
		`--out: "x.eps": want a name that ends in .svg, .pdf or .png`: {"--out", "x.eps", a},
		`--out: "-": want a name that ends in .svg, .pdf or .png`:     {"--out", "-", a},
		"--size: want \"one\" or \"two\" columns":                     {"--out", out, "--size", "three", a},
		"--font: want 4 to 30 points":                                 {"--out", out, "--font", "NaN", a},
		"--strategies: want at least one":                             {"--out", out, "--strategies", " ,", a},
		`--strategies "slob": the results have bfc, caching, tlsf`:    {"--out", out, "--strategies", "slob", a},
		`--kind "nosuch": want memory, capacity, waste, budget`:       {"--out", out, "--kind", "nosuch", a},
		"is a result of compare: want capacity, waste, budget or tr":  {"--out", out, "--kind", "time", a},
		"no such file or directory":                                   {"--out", out, "missing.json"},
		"the figure does not fit 2.0 x 2.0 cm":                        {"--out", out, "--size", "2x2", a},
		"standard input can be read only once":                        {"--out", out, "-", "-"},
		`stdin: byte 0: JSON ends early`:                              {"--out", out, "-"},
		"is a file to read":                                           {"--out", a, a},
	} {
		status, stdout, errs := command(t, append([]string{"plot"}, args...)...)
		assert.Equal(t, exitTrouble, status, want)
		assert.Empty(t, stdout, want)
		assert.Contains(t, errs, want)
		assert.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
		assert.NoFileExists(t, out, "nothing is half written")
	}
	status, _, errs := command(t, "plot", "--out", out)
	assert.Equal(t, exitTrouble, status, errs)
}
