package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tutorial docs/first-strategy.md says the same as the files of this directory, and every
// command on it and on docs/extending.md works. Their fenced blocks are of these kinds, by the
// words behind the fence:
//
//	go FILE           the next part of FILE here; all parts, in order, are the whole file
//	go part of FILE   lines that FILE, named from the root of the repository, has
//	sh                commands, run in order, in the directory in which the last ones ended
//	sh clone          commands for a clone with changes of the reader's own; not run
//	text              what the commands before it printed; times and directories may differ
//	text like         the same, and any number may differ
//	diff FILE         an edit: the line behind the minus becomes the one behind the plus
//
// The one liberty: the clone that the reader makes beside the new directory is this tree.

const (
	root     = "../.."
	tutorial = "first-strategy.md"
	howTo    = "extending.md"
)

// block is one fenced block of the page.
type block struct {
	line int // of the page
	info string
	text string
}

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page string) (all []block) {
	var open *block
	for i, line := range strings.Split(read(t, "docs/"+page), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 1, info: info}
		case fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil || len(all) < 10 {
		t.Fatalf("%d blocks, one is open: %v", len(all), open != nil)
	}
	return all
}

// read returns a file of the repository, named from its root.
func read(t *testing.T, name string) string {
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestPagesShowTheFiles compares the code on the pages with the files.
func TestPagesShowTheFiles(t *testing.T) {
	for _, page := range []string{tutorial, howTo} {
		shown := map[string]string{}
		for _, b := range blocks(t, page) {
			lang, name, _ := strings.Cut(b.info, " ")
			part, isPart := strings.CutPrefix(name, "part of ")
			switch {
			case lang == "go" && isPart:
				if !strings.Contains("\n"+read(t, part), "\n"+b.text) {
					t.Errorf("%s:%d: %s does not have these lines", page, b.line, part)
				}
			case lang == "go" && name != "":
				shown[name] += b.text
			case !slices.Contains([]string{"sh", "sh clone", "sh long", "text", "text like", "diff firstfit.go"}, b.info):
				t.Errorf("%s:%d: block of unknown kind %q", page, b.line, b.info)
			}
		}
		if want := 4; page == tutorial && len(shown) != want || page == howTo && len(shown) != 0 {
			t.Errorf("%s shows %d files, want %d on %s only", page, len(shown), want, tutorial)
		}
		for name, text := range shown {
			if dense(text) != dense(read(t, "examples/newstrategy/"+name)) {
				t.Errorf("%s: the blocks of %s are not the file", page, name)
			}
		}
	}
}

// dense returns text without empty lines.
func dense(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "\n")
}

var flagLong = flag.Bool("page.long", false, "also run the commands of the page that take minutes: the fuzzer's")

// TestTutorialWorks does what the tutorial says, from an empty directory.
func TestTutorialWorks(t *testing.T) { followPage(t, tutorial) }

// TestHowToWorks runs the commands of the page on extensions, in a directory beside the clone.
func TestHowToWorks(t *testing.T) { followPage(t, howTo) }

// followPage does what a page says, from its top to its bottom.
func followPage(t *testing.T, page string) {
	if testing.Short() {
		t.Skip("it builds a module, which -short leaves out")
	}
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	w := walker{t: t, clone: clone, dir: t.TempDir()}
	all := append(blocks(t, page), block{})
	for i, b := range all[:len(all)-1] {
		lang, name, _ := strings.Cut(b.info, " ")
		switch {
		case lang == "go" && !strings.HasPrefix(name, "part of "):
			w.write(name, b.text)
		case lang == "sh" && name == "clone": // tests of Vramyard's own packages, which CI runs
		case lang == "sh" && name == "long" && !*flagLong:
			t.Logf("line %d is left out without -page.long: it builds everything anew\n%s", b.line, b.text)
		case lang == "sh":
			w.run(b, strings.Contains(all[i+1].text, "FAIL"))
		case lang == "text":
			w.compare(b, name == "like")
		case lang == "diff":
			w.edit(b, name)
		}
		if t.Failed() {
			return
		}
	}
}

// walker follows the page.
type walker struct {
	t      *testing.T
	clone  string // this tree
	dir    string // where the reader is
	output string // of the last commands
}

// write adds a block to a file.
func (w *walker) write(name, text string) {
	path := filepath.Join(w.dir, name)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	if len(old) > 0 {
		text = string(old) + "\n" + text
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a block of commands and remembers where it ended. They fail if the page says so.
func (w *walker) run(b block, fails bool) {
	script := strings.ReplaceAll(b.text, "../vramyard", w.clone)
	script = regexp.MustCompile(`(?m)^git clone .*$`).ReplaceAllString(script, ":")
	ended := filepath.Join(w.t.TempDir(), "ended")
	c := exec.CommandContext(w.t.Context(), "sh", "-ec", "trap \"pwd > '"+ended+"'\" EXIT\n"+script)
	c.Dir = w.dir
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.CombinedOutput()
	w.output = string(out)
	w.t.Logf("line %d:\n%s%s", b.line, b.text, out)
	at, readErr := os.ReadFile(ended)
	if (err != nil) != fails || readErr != nil {
		w.t.Fatalf("line %d: got %v, %v", b.line, err, readErr)
	}
	w.dir = strings.TrimSpace(string(at))
}

// What differs from one machine or run to the next.
var (
	directory = regexp.MustCompile(`(trace:) .*/`)
	goLine    = regexp.MustCompile(`(\w+\.go):\d+`)
	seconds   = regexp.MustCompile(`\b\d+\.\d+m?s\b`)
	nsPerOp   = regexp.MustCompile(` +\d+ │ +(?:\d+|—) (│[^│]*│\n)`)
	ruler     = regexp.MustCompile(`─+`)
	cores     = regexp.MustCompile(`(?m)^(Benchmark\S*?)(-\d+)?[ \t]`)
	number    = regexp.MustCompile(`[\d,.]*\d`)
	spaces    = regexp.MustCompile(`[ \t]+`)
)

// normal returns printed text without what may differ.
func normal(text string, like bool) string {
	text = directory.ReplaceAllString(text, "$1 DIRECTORY/")
	text = goLine.ReplaceAllString(text, "$1:LINE")
	text = seconds.ReplaceAllString(text, "TIME")
	text = nsPerOp.ReplaceAllString(text, " NS │ NS $1")
	text = ruler.ReplaceAllString(text, "─")
	if like {
		text = cores.ReplaceAllString(text, "$1 ")
		text = number.ReplaceAllString(text, "N")
	}
	return dense(spaces.ReplaceAllString(text, " ")) + "\n"
}

// compare checks that the last commands printed what the page shows. Dots on a line of
// their own stand for lines left out.
func (w *walker) compare(b block, like bool) {
	rest, want := "\n"+normal(w.output, like), "\n"+normal(b.text, like)
	for part := range strings.SplitSeq(want, "\n...\n") {
		before, after, found := strings.Cut(rest, strings.TrimSuffix(part, "\n"))
		if !found || before != "" && strings.HasPrefix(want, part) {
			w.t.Errorf("line %d: the page shows\n%s\nprinted was\n%s", b.line, part, rest)
			return
		}
		rest = after
	}
	if strings.TrimSpace(rest) != "" && !strings.HasSuffix(want, "\n...\n") {
		w.t.Errorf("line %d: the page does not show\n%s", b.line, rest)
	}
}

// edit replaces the line behind the minus by the one behind the plus.
func (w *walker) edit(b block, name string) {
	minus, plus, err := hunk(b.text)
	if err != nil {
		w.t.Fatalf("line %d: %v", b.line, err)
	}
	path := filepath.Join(w.dir, name)
	old, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	if n := strings.Count(string(old), minus); n != 1 {
		w.t.Fatalf("line %d: %s has the line %d times", b.line, name, n)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(old), minus, plus, 1)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// hunk returns the two lines of an edit.
func hunk(text string) (minus, plus string, err error) {
	for line := range strings.Lines(text) {
		if l, ok := strings.CutPrefix(line, "-"); ok {
			minus = l
		}
		if l, ok := strings.CutPrefix(line, "+"); ok {
			plus = l
		}
	}
	if minus == "" || plus == "" {
		return "", "", fmt.Errorf("no line to replace in\n%s", text)
	}
	return minus, plus, nil
}
