package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blocks matches a block of a page: the language after the fence, and the text.
var blocks = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// word matches an argument of a command line: quoted, or without spaces.
var word = regexp.MustCompile(`'[^']*'|\S+`)

// TestPagesShowTheirOutput runs every command of a page's sh blocks in one directory and compares
// each text block with the output of the command above it. A trace block is the file my.trace. The
// rows of the README's table are those of its comparison.
func TestPagesShowTheirOutput(t *testing.T) {
	for _, name := range []string{"docs/tutorial.md", "docs/compare.md", "README.md"} {
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile("../" + name)
			require.NoError(t, err)
			examples, err := filepath.Abs("../examples")
			require.NoError(t, err)
			t.Chdir(t.TempDir())
			require.NoError(t, os.Symlink(examples, "examples"))
			var ran, shown int
			var out, all string
			for _, block := range blocks.FindAllStringSubmatch(string(page), -1) {
				switch block[1] {
				case "sh":
					for line := range strings.Lines(block[2]) {
						if line, found := strings.CutPrefix(line, "go run ./cmd/vramyard "); found {
							out = succeed(t, arguments(line)...)
							all += out
							ran++
						}
					}
				case "trace":
					require.NoError(t, os.WriteFile("my.trace", []byte(block[2]), 0o600))
				case "text":
					requireShown(t, block[2], out)
					shown++
				}
			}
			require.NotZero(t, ran)
			require.NotZero(t, shown)
			if name == "README.md" {
				requireRows(t, string(page), all)
			}
		})
	}
}

// row matches a row of a Markdown table whose first cell names a setup and whose next cell is a
// figure.
var row = regexp.MustCompile("(?m)^\\| `(\\S+)` \\| (\\d.*) \\|$")

// requireRows requires that each row of the page's tables, all five of the README's comparison,
// stands in the output, which may have more columns.
func requireRows(t *testing.T, page, out string) {
	t.Helper()
	rows := row.FindAllStringSubmatch(page, -1)
	require.Len(t, rows, 5)
	for _, cells := range rows {
		found := slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "│ "+cells[1]+" ") && !slices.ContainsFunc(strings.Split(cells[2], " | "),
				func(cell string) bool { return !strings.Contains(line, " "+cell+" │") })
		})
		require.True(t, found, "%s: no output has this row", cells[0])
	}
}

// TestSourcesRun runs the commands of docs/sources.md, whose rows have one form: four cells, and a
// command in the last.
func TestSourcesRun(t *testing.T) {
	page, err := os.ReadFile("../docs/sources.md")
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"examples", "harness"} {
		require.NoError(t, os.Symlink(filepath.Join(root, dir), dir))
	}
	commands := regexp.MustCompile("`vramyard ([^`]*)`")
	ran := 0
	for row := range strings.Lines(string(page)) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| what |") {
			continue
		}
		cells := strings.Split(strings.Trim(row, "|\n"), " | ")
		require.Len(t, cells, 4, row)
		found := commands.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, found, row)
		for _, c := range found {
			t.Run(c[1], func(t *testing.T) { succeed(t, arguments(c[1])...) })
			ran++
		}
	}
	require.NotZero(t, ran)
}

// arguments splits a command line without its comment. A page of view ends at once.
func arguments(line string) (args []string) {
	line, _, _ = strings.Cut(line, " # ")
	for _, arg := range word.FindAllString(line, -1) {
		args = append(args, strings.Trim(arg, "'"))
	}
	if args[0] == "view" {
		args = append(args, "--no-browser", "--for", "1ms")
	}
	return args
}

// measured matches the columns of a table that hold times of this machine, which come before notes.
var measured = regexp.MustCompile(`(?: +(?:\d+|—) │){1,2}([^│\n]*│\n)`)

// withoutTimes returns text without times of this machine and the widths that depend on them.
func withoutTimes(text string) string {
	text = measured.ReplaceAllString(text, " TIME │$1")
	text = regexp.MustCompile(`─+`).ReplaceAllString(text, "─")
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(text, " ")
}

// requireShown requires that a page's text is the output. A line of dots stands for lines left out.
func requireShown(t *testing.T, shown, out string) {
	t.Helper()
	want, rest := withoutTimes(shown), "\n"+withoutTimes(out)
	parts := strings.Split("\n"+want, "\n...\n")
	for i, part := range parts {
		if part = strings.Trim(part, "\n"); part == "" {
			continue
		}
		before, after, found := strings.Cut(rest, "\n"+part+"\n")
		require.True(t, found && (i > 0 || before == ""), "the page shows\n%s\nthe command writes\n%s", part, rest)
		rest = "\n" + after
	}
	if parts[len(parts)-1] != "" {
		require.Empty(t, strings.TrimSpace(rest), "the page does not show it")
	}
}
