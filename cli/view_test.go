package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/report"
)

// firstLine hands over the first line that is written.
type firstLine chan string

// Write implements io.Writer.
func (c firstLine) Write(b []byte) (int, error) {
	select {
	case c <- strings.TrimSpace(string(b)):
	default:
	}
	return len(b), nil
}

// viewed runs the command with some words, hands its address to f, and interrupts it as a reader
// does.
func viewed(t *testing.T, f func(address string), words ...string) {
	t.Helper()
	out := make(firstLine, 1)
	var errs bytes.Buffer
	done := make(chan int, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		done <- run(ctx, everything, append([]string{"view", "--no-browser", "--cache", "none", "--for", "10m"}, words...),
			strings.NewReader(""), out, &errs)
	}()
	select {
	case address := <-out:
		f(address)
		interrupt()
	case code := <-done:
		require.Fail(t, "the command ended", "%d: %s", code, errs.String())
	}
	require.Equal(t, exitDone, <-done, errs.String())
}

// body returns what is answered to a question, asking again as long as the page is made.
func body(t *testing.T, address string) string {
	t.Helper()
	for {
		answer, err := http.Get(address)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		if answer.StatusCode == http.StatusOK && !bytes.Contains(text, []byte(`http-equiv="refresh"`)) {
			return string(text)
		}
		require.NotEqual(t, http.StatusInternalServerError, answer.StatusCode, string(text))
		time.Sleep(20 * time.Millisecond)
	}
}

// TestViewServesATraceAndAPage opens one of each.
func TestViewServesATraceAndAPage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, `<script>alert(1)<script>.trace`)
	require.NoError(t, os.WriteFile(file, []byte("a 1 1MiB tag=weights\na 2 2MiB\nf 1\na 3 100MiB\nf 2\n"), 0o600))
	report := filepath.Join(dir, "r.html")
	require.Equal(t, exitDone, run(t.Context(), everything, []string{"replay", "--strategy", "bfc", "--html", report,
		file}, nil, io.Discard, io.Discard))
	viewed(t, func(address string) {
		index := body(t, address)
		require.NotContains(t, index, "<script>alert")
		page := body(t, address+"0/")
		require.Contains(t, page, `"live":true`)
		require.Contains(t, page, "connect-src &#39;self&#39;")
		require.NotContains(t, page, "<script>alert")
		require.Contains(t, body(t, address+"0/state?run=1&event=3"), `"event":3`)
		want, err := os.ReadFile(report)
		require.NoError(t, err)
		require.Equal(t, string(want), body(t, address+"1/"))
	}, "--strategies", "bfc,caching", "--device", "sim:32MiB", file, report)
}

// TestViewShowsResults opens results that --json wrote, with a hostile name.
func TestViewShowsResults(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.trace")
	require.NoError(t, os.WriteFile(file, []byte("# name <script>alert(1)</script>\na 1 1MiB\na 2 2MiB\nf 1\n"), 0o600))
	compared, replayed := filepath.Join(dir, "c.json"), filepath.Join(dir, "r.json")
	require.Equal(t, exitDone, run(t.Context(), everything, []string{"compare", "--strategies", "bfc,caching", "--json",
		compared, file}, nil, io.Discard, io.Discard))
	require.Equal(t, exitDone, run(t.Context(), everything, []string{"replay", "--strategy", "bfc", "--json", replayed,
		file}, nil, io.Discard, io.Discard))
	viewed(t, func(address string) {
		for i, says := range []string{"vramyard view --strategies bfc,caching TRACE",
			"vramyard view --strategies bfc TRACE"} {
			page := body(t, fmt.Sprintf("%s%d/", address, i))
			require.Contains(t, page, says)
			require.Contains(t, page, "No plot of time")
			require.Contains(t, page, "data:image/svg")
			require.Contains(t, page, ">3.00 MiB<")
			require.NotContains(t, page, "<script>alert")
		}
	}, compared, replayed)
}

// TestViewShowsOtherResults opens a compressed result, and one that is no list of runs.
func TestViewShowsOtherResults(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.trace")
	require.NoError(t, os.WriteFile(file, []byte("a 1 1MiB\na 2 2MiB\nf 1\n"), 0o600))
	packed, planned := filepath.Join(dir, "c.json.zst"), filepath.Join(dir, "o.json.gz")
	require.Equal(t, exitDone, run(t.Context(), everything, []string{"compare", "--strategies", "bfc", "--json", packed,
		file}, nil, io.Discard, io.Discard))
	require.Equal(t, exitDone, run(t.Context(), everything, []string{"offline", "--json", planned, file}, nil, io.Discard,
		io.Discard))
	viewed(t, func(address string) {
		require.Contains(t, body(t, address+"0/"), "vramyard view --strategies bfc TRACE")
		page := body(t, address+"1/")
		require.Contains(t, page, "vramyard-offline/1")
		require.Contains(t, page, "greedy by size")
		require.Contains(t, page, ">3.00 MiB<")
	}, packed, planned)
}

// TestViewExplainsTheFirstFailure opens a trace that does not fit, through two strategies.
func TestViewExplainsTheFirstFailure(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.trace")
	require.NoError(t, os.WriteFile(file, []byte("a 1 20MiB tag=weights\na 2 20MiB\nf 2\na 3 30MiB\n"), 0o600))
	viewed(t, func(address string) {
		page := body(t, address+"0/")
		require.Contains(t, page, `"schema":"vramyard-postmortem/1"`)
		require.Contains(t, page, `"others":[{`)
	}, "--strategies", "bfc,caching", "--device", "sim:48MiB", file)
}

// TestViewRefusesWhatItCannotShow tries wrong input.
func TestViewRefusesWhatItCannotShow(t *testing.T) {
	dir := t.TempDir()
	html, text := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.trace")
	require.NoError(t, os.WriteFile(html, []byte("<!doctype html><p>hello"), 0o600))
	require.NoError(t, os.WriteFile(text, []byte("a 1 1MiB\nboo\n"), 0o600))
	result := filepath.Join(dir, "a.json")
	require.NoError(t, os.WriteFile(result, []byte(`{"schema": "vramyard-compare/1", "runs": [{}]}`), 0o600))
	empty, cut := filepath.Join(dir, "e.trace"), filepath.Join(dir, "cut.json.gz")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.WriteFile(cut, []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaaVJ"), 0o600))
	form := filepath.Join(dir, "form")
	require.NoError(t, os.WriteFile(form, []byte("root:x:0\n"), 0o600))
	for name, c := range map[string]struct {
		words string
		code  int
		says  string
	}{
		"an unknown form": {"view --no-browser " + form, exitTrouble, "as no known format does"},
		"two wrong files": {"view --no-browser " + empty + " " + dir + "/none", exitTrouble,
			"e.trace: empty file: want a trace; " + dir + "/none"},
		"a directory":      {"view --no-browser " + dir, exitTrouble, "is a directory"},
		"an empty file":    {"view --no-browser " + empty, exitTrouble, "e.trace: empty file"},
		"a cut file":       {"view --no-browser " + cut, exitTrouble, "cut.json.gz"},
		"no file":          {"view", exitTrouble, "0 arguments: want "},
		"a missing file":   {"view --no-browser " + dir + "/none", exitTrouble, "none: no such file"},
		"foreign HTML":     {"view --no-browser " + html, exitTrouble, "a.html: HTML, and no page that vramyard wrote"},
		"a bad trace":      {"view --no-browser " + text, exitTrouble, "a.trace:2: "},
		"a bad result":     {"view --no-browser " + result, exitTrouble, "a.json: "},
		"a strategy":       {"view --no-browser --strategies nobody " + text, exitTrouble, "--strategies: "},
		"a device":         {"view --no-browser --device sim:0 " + text, exitTrouble, "--device: "},
		"a negative time":  {"view --no-browser --for -1s " + text, exitTrouble, "--for: "},
		"a port":           {"view --no-browser --port 99999 " + text, exitTrouble, "--port"},
		"an earlier stdin": {"view --no-browser - -", exitTrouble, "standard input can be read only once"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, c.code, run(t.Context(), everything, strings.Fields(c.words), strings.NewReader(""), &out, &errs))
			require.Contains(t, errs.String(), c.says)
			switch name {
			case "an unknown form", "two wrong files", "an empty file", "a missing file", "no file":
				require.Empty(t, out.String(), "there is nothing to look at under an address")
			}
		})
	}
}

// TestOtherUsersDoNotSeeTheAddress has a program in the place of the one that opens browsers: its
// argument, which every user of the machine can read, is a file that only this one can, and that
// file leads to the address.
func TestOtherUsersDoNotSeeTheAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a system on which xdg-open opens browsers")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o777))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	part, end := report.ShellWord(filepath.Join(dir, "part")), report.ShellWord(filepath.Join(dir, "said"))
	script := "#!/bin/sh\n{ echo \"$@\"; stat -c %a \"$1\"; cat \"$1\"; } > " + part + "\nmv " + part + " " + end + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700))
	out := make(firstLine, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	done := make(chan int, 1)
	trace := write(t, "t.trace", "a 1 1MiB\n")
	go func() {
		done <- run(ctx, everything, []string{"view", "--cache", "none", "--for", "10m", trace}, strings.NewReader(""), out,
			io.Discard)
	}()
	address := <-out
	var said []byte
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "said"))
		said = text
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	interrupt()
	require.Equal(t, exitDone, <-done)
	arguments, rest, _ := strings.Cut(string(said), "\n")
	mode, page, _ := strings.Cut(rest, "\n")
	require.Regexp(t, "^"+regexp.QuoteMeta(filepath.Join(dir, "tmp"))+`/vramyard-view-\d+\.html$`, arguments)
	require.Equal(t, "600", mode)
	require.Contains(t, page, `content="0; url=`+address+`"`)
	require.NoFileExists(t, arguments, "it is removed at the end")
}
