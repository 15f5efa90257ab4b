package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/provenance"
)

const commandsPage = "../docs/commands.md"

// TestCommandsPage compares docs/commands.md with the command line.
func TestCommandsPage(t *testing.T) {
	root := newRoot(everything, new(bool))
	var b strings.Builder
	b.WriteString("# Commands\n\n" +
		"<!-- written by go test ./cli -run TestCommandsPage -rewrite -->\n\n" +
		"Every command, flag and default of `vramyard`, and its [exit statuses](#exit-status). `vramyard COMMAND --help` " +
		"prints the same text, and `vramyard --version` the version. A flag may stand before or after the arguments, and " +
		"takes its value as `--flag VALUE` or `--flag=VALUE`.\n")
	list(&b, root)
	for _, c := range root.Commands() {
		describe(&b, c, "##")
	}
	_, status, _ := strings.Cut(root.Long, "\n\nExit status:\n\n")
	b.WriteString("\n## Exit status\n" + paragraphs(status))
	if *rewrite {
		require.NoError(t, os.WriteFile(commandsPage, []byte(b.String()), 0o644))
	}
	kept, err := os.ReadFile(commandsPage)
	require.NoError(t, err)
	require.True(t, b.String() == string(kept),
		"docs/commands.md differs from the command line: go test ./cli -run TestCommandsPage -rewrite")
}

// list writes a table of the subcommands of c.
func list(b *strings.Builder, c *cobra.Command) {
	b.WriteString("\n| command | purpose |\n|---|---|\n")
	for _, sub := range c.Commands() {
		path := sub.CommandPath()
		fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), tableCell(sub.Short))
	}
}

// describe writes the section of a command and those of its subcommands.
func describe(b *strings.Builder, c *cobra.Command, level string) {
	fmt.Fprintf(b, "\n%s %s\n", level, c.CommandPath())
	text := c.Long
	if text == "" {
		text = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	b.WriteString(paragraphs(text))
	if !c.HasSubCommands() || c.HasExample() {
		b.WriteString(fenced([]string{strings.TrimSuffix(c.UseLine(), " [flags]")}) + "\n")
	}
	if c.HasExample() {
		b.WriteString("\nFor example:\n" + fenced([]string{c.Example}) + "\n")
	}
	flags(b, c.Flags())
	if c.HasSubCommands() {
		list(b, c)
	}
	for _, sub := range c.Commands() {
		if c.Name() == "completion" { // cobra's, whose text is about shells
			sub.Long = ""
		}
		describe(b, sub, "###")
	}
}

// flags writes the table of the flags of a command.
func flags(b *strings.Builder, set *pflag.FlagSet) {
	head := "\n| flag | meaning | default |\n|---|---|---|\n"
	set.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "`" + strings.TrimSpace("--"+f.Name+" "+value) + "`"
		fmt.Fprintf(b, "%s| %s | %s | %s |\n", head, name, tableCell(usage), defaultOf(f))
		head = ""
	})
}

// defaultOf returns the default of a flag as a cell, which is empty if there is none or the meaning
// describes it.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "false":
		return ""
	}
	if strings.Contains(f.Usage, "(default") {
		return ""
	}
	return "`" + strings.ReplaceAll(f.DefValue, ",", "`, `") + "`"
}

// paragraphs returns a help text as Markdown: indented lines are code.
func paragraphs(text string) string {
	var b strings.Builder
	for _, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		var prose, code []string
		for _, line := range strings.Split(p, "\n") {
			if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
				code = append(code, line)
			} else if len(code) > 0 {
				prose = append(prose, fenced(code), prosed(line))
				code = nil
			} else {
				prose = append(prose, prosed(line))
			}
		}
		if len(code) > 0 {
			prose = append(prose, fenced(code))
		}
		b.WriteString("\n" + strings.TrimPrefix(strings.Join(prose, "\n"), "\n") + "\n")
	}
	return b.String()
}

func fenced(lines []string) string {
	return "\n```\n" + unindented(strings.Join(lines, "\n")) + "\n```"
}

// unindented removes the indentation of the first line from all.
func unindented(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n"+indent, "\n"), indent)
}

var (
	codeWords  = regexp.MustCompile(`"(vramyard [^"]*|-tags nvml|go tool pprof)"|(--[a-z][a-z-]*(?: (?:(?:cuda|sim):\w+|caching|quick|full|'\{\}'))?)|([a-z]*\{"[^ ]*\})`)
	namedPages = regexp.MustCompile(`docs/([a-z-]+\.md)`)
	markup     = strings.NewReplacer("*", `\*`, "<", "&lt;", "|", `\|`)
)

// prosed returns a line of a help text as Markdown: flags and commands are code, names of pages are
// links.
func prosed(line string) string {
	var b strings.Builder
	for line != "" {
		m := codeWords.FindStringSubmatchIndex(line)
		if m == nil {
			break
		}
		b.WriteString(markup.Replace(line[:m[0]]))
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				b.WriteString("`" + line[m[i]:m[i+1]] + "`")
			}
		}
		line = line[m[1]:]
	}
	b.WriteString(markup.Replace(line))
	return namedPages.ReplaceAllString(b.String(), "[$1]($1)")
}

// tableCell returns a text for a cell of a table.
func tableCell(text string) string { return prosed(strings.ReplaceAll(text, "\n", " ")) }

// TestCitation compares the version in CITATION.cff with the program's.
func TestCitation(t *testing.T) {
	file, err := os.ReadFile("../CITATION.cff")
	require.NoError(t, err)
	require.Contains(t, string(file), "\nversion: "+provenance.Version+"\n")
}
