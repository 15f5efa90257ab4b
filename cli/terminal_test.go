//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longest is how long a command under a terminal may take before it is killed, which ends what
// reads from it.
const longest = time.Minute

// hostile is a name with what drives terminals, what turns the direction of a line, and characters
// of two columns.
const hostile = "日本\x1b[31m\u202e\a 🚀 a name that is longer than many windows are wide, as people like to " +
	"have them.trace"

// terminal is a command under a terminal of its own.
type terminal struct {
	*os.File
	command *exec.Cmd
	columns int
	seen    bytes.Buffer
}

// asProgram returns this program as a command with an environment that says nothing of terminals
// but what is given.
func asProgram(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, exe, args...)
	c.Dir = t.TempDir()
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "NO_COLOR" || name == "TERM" || name == "COLUMNS" || name == "LANG" || strings.HasPrefix(name, "LC_")
	})
	c.Env = append(append(c.Env, asCommand+"=quiet"), env...)
	return c
}

// onTerminal begins a command in a window of so many columns.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) *terminal {
	t.Helper()
	c := asProgram(t, env, args...)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: columns})
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Skipf("no terminal is to be had here: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // what was read is what counts
	return &terminal{File: f, command: c, columns: int(columns)}
}

// until reads what the command writes until that has something, or to its end.
func (w *terminal) until(what *regexp.Regexp) bool {
	for b := make([]byte, 4096); ; {
		n, err := w.Read(b)
		w.seen.Write(b[:n])
		if what != nil && what.Match(w.seen.Bytes()) {
			return true
		}
		if err != nil {
			return false // on Linux the end is an error
		}
	}
}

// wait reads everything that the command writes, and returns its error.
func (w *terminal) wait() error {
	w.until(nil)
	err := w.command.Wait()
	// If the command writes its last line and ends during a read, Linux may report the end first. The
	// next read returns the line.
	w.until(nil)
	return err
}

// interrupt has a user press Ctrl-C.
func (w *terminal) interrupt(t *testing.T) {
	t.Helper()
	_, err := w.Write([]byte{3})
	require.NoError(t, err)
}

// end returns the exit status, and the lines that the terminal shows in the end.
func (w *terminal) end(t *testing.T) (status int, lines []string) {
	t.Helper()
	err := w.wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	require.NotEqual(t, -1, status, "killed after %v: %s", longest, w.seen.String())
	return status, w.screen(t, echoAtTheEnd.ReplaceAllString(w.seen.String(), "$1"))
}

// echoAtTheEnd is a ^C after the last wipe, and the text behind it. A terminal sends the signal
// before it echoes the key, so the command can be faster than the echo.
var echoAtTheEnd = regexp.MustCompile(`\^C([^\x1b]*)$`)

// copied is a line that is for a shell, which a line break would spoil.
var copied = regexp.MustCompile(`^ *(vramyard|export) `)

// inColor begins or ends a piece of text in a colour of a verdict.
var inColor = regexp.MustCompile("^\x1b\\[(32|31|0)m")

// screen returns the lines that a terminal shows which follows s. The only controls are to wipe the
// rest of a line and to show verdicts in colors, and no line is ever wider than the window.
func (w *terminal) screen(t *testing.T, s string) (lines []string) {
	t.Helper()
	var line []rune // a character of two columns has a zero behind it
	at, widest := 0, 0
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "\x1b[K"); ok {
			line, s = line[:min(at, len(line))], rest
			continue
		}
		if color := inColor.FindString(s); color != "" {
			s = s[len(color):]
			continue
		}
		r := []rune(s[:min(len(s), 4)])[0]
		s = s[len(string(r)):]
		switch {
		case r == '\r':
			at = 0
		case r == '\n':
			shown := strings.ReplaceAll(string(line), "\x00", "")
			if !copied.MatchString(shown) {
				assert.LessOrEqual(t, widest, w.columns, shown)
			}
			lines = append(lines, shown)
			line, at, widest = nil, 0, 0
		case r < ' ' || r == 0x7f || r == '\u202e':
			require.Failf(t, "something drives the terminal", "%q in front of %.40q", r, s)
		default:
			cells := append([]rune{r}, make([]rune, max(text.RuneWidth(r), 1)-1)...)
			line = append(line, slices.Repeat([]rune{' '}, max(at-len(line), 0))...)
			line = slices.Replace(line, at, min(at+len(cells), len(line)), cells...)
			at += len(cells)
			widest = max(widest, at)
		}
	}
	return append(lines, strings.ReplaceAll(string(line), "\x00", ""))
}

// everyTable are command lines that print tables, which take next to no time.
func everyTable(t *testing.T) map[string][]string {
	t.Helper()
	path := write(t, hostile, small+"a 9 70000000\nmark 日本語\u202e🚀\n")
	result := filepath.Join(t.TempDir(), "r.json")
	succeed(t, "compare", "--strategies", "bfc,slab", "--json", result, path)
	return map[string][]string{
		"strategies": {"strategies"},
		"strategy":   {"strategies", "caching"},
		"devices":    {"devices"},
		"compare":    {"compare", "--strategies", "bfc,buddy:xdl,slab,caching", path},
		"capacity":   {"compare", "--strategies", "bfc,caching", "--capacity", "64MiB", path},
		"replay":     {"replay", "--strategy", "caching", "--device", "sim:64MiB", path},
		"explain":    {"replay", "--strategy", "caching", "--device", "sim:64MiB", "--explain", "-", path},
		"whatif":     {"whatif", "--device", "sim:64MiB", path},
		"fleet":      {"fleet", "--device", "sim:64MiB", path, write(t, "more"+hostile, small)},
		"tune":       {"tune", "--strategy", "slab", "--points", "3", "--settings", "quantum", path},
		"offline":    {"offline", path},
		"check":      {"check", "--strategies", "bfc", "--tests", "2"},
		"bench": {"bench", "--strategies", "tlsf,bfc", "--workloads", "w1", "--live", "100", "--pairs", "1000",
			"--rounds", "1"},
		"trace info":      {"trace", "info", path},
		"diff":            {"diff", result, result, "--all"},
		"trace diff":      {"trace", "diff", path, path},
		"trace diff more": {"trace", "diff", path, write(t, "other"+hostile, small)},
		"wrong":           {"trace", "info", write(t, "wrong"+hostile, "a 1 \x1b[31m\n")},
		"unknown":         {"replay", "--strategy", "no \x1b[31m such", path},
	}
}

// failing are the command lines of everyTable that end with an error, and their exit statuses.
var failing = map[string]int{"trace diff more": exitFailed, "wrong": exitTrouble, "unknown": exitTrouble}

func TestWindowsOfEveryWidth(t *testing.T) {
	for name, args := range everyTable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, columns := range []uint16{40, 80, 120, 200} {
				w := onTerminal(t, columns, []string{"TERM=xterm-256color"}, args...)
				status, lines := w.end(t)
				want := exitDone
				if failing[name] > 0 {
					want = failing[name]
				}
				assert.Equal(t, want, status, "%d columns: %s", columns, w.seen.String())
				assert.NotEmpty(t, strings.Join(lines, ""))
				assert.Empty(t, lines[len(lines)-1], "the last line has ended, and no progress is left")
				assertAligned(t, lines)
			}
		})
	}
}

// assertAligned holds every row of every table to the columns of its first line.
func assertAligned(t *testing.T, lines []string) {
	t.Helper()
	var edges []int // of the table that is looked at
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "┌"):
			edges = rules(line, "┌┬┐")
		case strings.HasPrefix(line, "├"):
			assert.Equal(t, edges, rules(line, "├┼┤"), line)
		case strings.HasPrefix(line, "└"):
			assert.Equal(t, edges, rules(line, "└┴┘"), line)
		case strings.HasPrefix(line, "│"):
			assert.Subset(t, rules(line, "│"), edges, line)
		}
	}
}

// rules returns the columns at which a line has one of some characters.
func rules(line, of string) (at []int) {
	column := 0
	for _, r := range line {
		if strings.ContainsRune(of, r) {
			at = append(at, column)
		}
		column += text.RuneWidth(r)
	}
	return at
}

func TestPlainTerminals(t *testing.T) {
	for name, args := range everyTable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onTerminal(t, 80, []string{"TERM=xterm", "NO_COLOR=1"}, args...).end(t)
			dumb := onTerminal(t, 80, []string{"TERM=dumb"}, args...)
			dumb.end(t)
			assert.NotContains(t, dumb.seen.String(), "\x1b")
			for _, env := range [][]string{{"TERM=xterm"}, {"LC_ALL=ja_JP.UTF-8"}} {
				c := asProgram(t, env, args...)
				out, err := c.CombinedOutput()
				if _, failed := errors.AsType[*exec.ExitError](err); !failed {
					require.NoError(t, err)
				}
				assert.NotContains(t, string(out), "\x1b", "no terminal")
				assert.NotContains(t, string(out), "\r", "no terminal")
				assertAligned(t, strings.Split(string(out), "\n"))
			}
		})
	}
}

// aRate is a progress that tells its rate and what is left.
var aRate = regexp.MustCompile(`\d+ of \d+ \w+, about \w+ left, [\d.]+[kM]?/s`)

// endless is a command that takes hours, and tells its progress after a moment.
var endless = []string{"offline", "--steps", "1000000000000000"}

func TestDumbTerminalsSeeNoProgress(t *testing.T) {
	w := onTerminal(t, 60, []string{"TERM=dumb", asCommand + "=1"}, endless...)
	require.True(t, w.until(regexp.MustCompile("listening")), w.seen.String())
	time.Sleep(progressAfter + 2*progressTick) // enough for a line of progress; a slow machine only makes the check weaker
	w.interrupt(t)
	status, lines := w.end(t)
	assert.Equal(t, exitInterrupted, status)
	assert.NotContains(t, strings.Join(lines, " "), " left")
	assert.NotContains(t, w.seen.String(), "\x1b")
}

func TestCtrlCOnATerminal(t *testing.T) {
	w := onTerminal(t, 60, []string{"TERM=xterm"}, endless...)
	require.True(t, w.until(regexp.MustCompile(`, about \w+ left|, for \d+s`)), w.seen.String())
	w.interrupt(t)
	status, lines := w.end(t)
	screen := strings.Join(lines, "\n")
	assert.Equal(t, exitInterrupted, status)
	assert.Contains(t, screen, "vramyard: ending with partial results; interrupt again to\nend at once\n",
		"lines of their own")
	assert.Contains(t, screen, "vramyard: interrupted: ")
	assert.NotRegexp(t, `, about \w+ left|, for \d+s`, screen, "the line of the progress is wiped")
	assertAligned(t, lines)
}

func TestCtrlCLeavesNoHalfTrace(t *testing.T) {
	w := onTerminal(t, 80, []string{"TERM=xterm"}, "trace", "gen", "w1", "--pairs", "6000000", "x.parquet")
	require.True(t, w.until(aRate), w.seen.String())
	w.interrupt(t)
	status, lines := w.end(t)
	assert.Equal(t, exitInterrupted, status)
	assert.Equal(t, "vramyard: interrupted", strings.TrimSpace(strings.Join(lines, "\n")))
	left, err := os.ReadDir(w.command.Dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is half written")
}

// painted is a piece of text in a colour.
var painted = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestVerdictsAreInColour holds what a terminal shows in colours to what it shows without.
func TestVerdictsAreInColour(t *testing.T) {
	trace := tabled(t)
	for first, args := range map[string][]string{
		"\x1b[32mbestfit\x1b[0m completes t with least memory": {"compare", "--strategies",
			"bestfit,caching,slab:xdl", trace},
		"\x1b[32mcaching\x1b[0m completes t and reserves": {"replay", "--strategy", "caching", trace},
		"\x1b[31mFAILED:\x1b[0m refuses 3 requests":       {"replay", "--strategy", "slab:xdl", trace},
		"\x1b[32mcompletes\x1b[0m this run on":            {"whatif", "--device", "sim:12MiB", trace},
		"\x1b[31mNone:\x1b[0m":                            {"whatif", "--device", "sim:8MiB", trace},
		"\x1b[32mbfc:growth with allow_growth=false\x1b[0m needs least memory": {"tune", "--strategy", "bfc:growth",
			"--settings", "allow_growth", trace},
		"t fits in \x1b[32m8.00 MiB\x1b[0m, its lower bound":        {"offline", trace},
		"\x1b[31mFAILED:\x1b[0m no placement of t fits in 1.00 MiB": {"offline", "--capacity", "1MiB", trace},
		"with \x1b[32mbfc by lru (ladder ": {"remat", mustAbs(t, unet), "--heuristics",
			"lru", "--strategies", "bfc", "--budgets", "0.6,1"},
		"\x1b[32mtlsf\x1b[0m takes ": benching("--strategies", "tlsf",
			"--workloads", "w1"),
	} {
		colored := onTerminal(t, 200, []string{"TERM=xterm-256color"}, args...)
		colored.end(t)
		require.Contains(t, colored.seen.String(), first)
		plain := onTerminal(t, 200, []string{"TERM=xterm-256color", "NO_COLOR=1"}, args...)
		plain.end(t)
		require.NotRegexp(t, painted, plain.seen.String())
		require.Contains(t, plain.seen.String(), painted.ReplaceAllString(first, ""))
	}
	sizeless := onTerminal(t, 0, []string{"TERM=xterm-256color"}, "replay", "--strategy", "caching", trace)
	require.NoError(t, sizeless.wait())
	require.Contains(t, sizeless.seen.String(), "\x1b[32mcaching\x1b[0m completes t and reserves", "the size is not known")
	narrow := onTerminal(t, 60, []string{"TERM=xterm-256color"}, "compare", "--strategies",
		"bestfit,caching,slab:xdl", trace)
	narrow.end(t)
	require.Regexp(t, painted, narrow.seen.String())
	var lines []string
	for l := range strings.SplitSeq(painted.ReplaceAllString(narrow.seen.String(), ""), "\r\n") {
		if strings.ContainsAny(l, "│┌├└") {
			lines = append(lines, l)
		}
	}
	assertAligned(t, lines)
}
