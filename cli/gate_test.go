package cli

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/provenance"
)

// steps are those of a small training: the requests of the work. Its weights have the ids 1 to 3.
func steps(extra string) string {
	var t strings.Builder
	for step := range 3 {
		fmt.Fprintf(&t, "mark \"step %d\"\n", step)
		base := 100 * (step + 1)
		fmt.Fprintf(&t, "a %d 30MiB tag=activation:attention\na %d 700KiB stream=9 tag=temp:norm\n", base, base+1)
		fmt.Fprintf(&t, "use %d 9\nf %d\na %d 12MiB tag=grad:attention\n", base, base, base+2)
		if step == 1 {
			t.WriteString(extra)
		}
		fmt.Fprintf(&t, "a %d 4MiB tag=activation:head\nf %d\nf %d\nf %d\n", base+3, base+1, base+2, base+3)
	}
	return t.String()
}

// weights allocates the weights in some order, with lines before each.
func weights(before string, order ...int) string {
	var t strings.Builder
	for k, id := range order {
		t.WriteString(strings.ReplaceAll(before, "N", fmt.Sprint(k)))
		fmt.Fprintf(&t, "a %d %dMiB tag=weights:%d\n", id, 10*id, id)
	}
	return t.String()
}

// histories are five histories of the same work: a run alone, weights in another order, larger work
// before, fragments that it left over, and frees that complete at other times.
func histories(extra string) map[string]string {
	work := steps(extra)
	late := strings.NewReplacer("f 100\n", "f 100\npoll\n", "f 202\n", "f 202\ndrain 9\n").Replace(work)
	return map[string]string{
		"alone":      weights("", 1, 2, 3) + work,
		"reordered":  weights("", 3, 1, 2) + work,
		"after work": "a 7 500MiB\na 8 90MiB stream=9\nf 7\nf 8\n" + weights("", 2, 1, 3) + work,
		"fragmented": weights("a 5N 3MiB\na 6N 900KiB\n", 1, 2, 3) + "f 50\nf 51\nf 52\nf 60\nf 61\nf 62\n" + work,
		"delayed":    weights("", 1, 2, 3) + strings.ReplaceAll(late, "f 301\n", "f 301\ndone 301\n"),
	}
}

// recorded writes a history as the snapshot that PyTorch would have written with a setting, under
// the name train.
func recorded(t *testing.T, history, conf string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.pickle")
	args := []string{"replay", "--strategy", "caching", "--snapshot", path, write(t, "train.trace", history)}
	if conf != "" {
		args = append(args, "--config", fmt.Sprintf(`{"conf":%q}`, conf))
	}
	succeed(t, args...)
	return path
}

func TestFiveHistoriesHaveOneVerdict(t *testing.T) {
	budget := filepath.Join(t.TempDir(), "budget.yaml")
	succeed(t, "gate", "--baseline", budget, "--update", recorded(t, histories("")["alone"], ""))
	const regression = "a 9 2MiB tag=activation:added\n"
	peaks, want := map[string]bool{}, map[bool]string{}
	for name := range histories("") {
		for _, worse := range []bool{false, true} {
			extra, status := "", exitDone
			if worse {
				extra, status = regression, exitFailed
			}
			conf := ""
			if name == "fragmented" {
				conf = "expandable_segments:True"
			}
			path := recorded(t, histories(extra)[name], conf)
			peaks[succeed(t, "trace", "info", path)] = true
			got, out, errs := command(t, "gate", "--baseline", budget, path)
			require.Equal(t, status, got, "%s: %s%s", name, out, errs)
			_, table, _ := strings.Cut(out, "┌")
			table, _, _ = strings.Cut(table, "blocks are")
			if want[worse] == "" {
				want[worse] = table
			}
			require.Equal(t, want[worse], table, name)
			require.Equal(t, worse, strings.Contains(out, "train:0 activation:added"), name)
		}
	}
	require.Len(t, peaks, 10, "the recordings differ")
}

// provenanceObject matches the object "provenance" of a result.
var provenanceObject = regexp.MustCompile(`(?s)"provenance": \{.*?\}`)

// golden compares a text with a file, without the program.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata/gate", name)
	text = provenanceObject.ReplaceAllString(text, `"provenance": {}`)
	text = strings.ReplaceAll(text, `"`+provenance.Version+`"`, `"VERSION"`)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, name)
}

// onPage compares a text with a section of docs/gate.md.
func onPage(t *testing.T, section, text string) {
	t.Helper()
	const path = "../docs/gate.md"
	page := content(t, path)
	_, rest, found := strings.Cut(page, "<!-- "+section+
		": written by go test ./cli -run TestGateWritesEveryForm -rewrite -->\n")
	_, after, ended := strings.Cut(rest, "<!-- /"+section+" -->")
	require.True(t, found && ended)
	want := strings.TrimSuffix(page, rest) + "```\n" + text + "```\n<!-- /" + section + " -->" + after
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, page, "go test ./cli -run TestGateWritesEveryForm -rewrite")
}

// content returns the content of a file.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestGateWritesEveryForm judges a regression, and a budget whose recording is missing.
func TestGateWritesEveryForm(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	budget := at("budget.yaml")
	first := write(t, "train.trace", histories("")["alone"])
	succeed(t, "gate", "--baseline", budget, "--update", first)
	onPage(t, "budget", strings.ReplaceAll(content(t, budget), `"`+provenance.Version+`"`, `"VERSION"`))
	succeed(t, "gate", "--baseline", budget, "--update", first, "../examples/oom/layouts.pickle.gz")
	golden(t, "budget.yaml", content(t, budget))
	now := write(t, "train.trace", histories("a 9 2MiB tag=activation:added\n")["alone"])
	status, out, errs := command(t, "gate", "--baseline", budget, now, "--json", at("o.json"), "--markdown", at("o.md"),
		"--junit", at("o.xml"), "--sarif", at("o.sarif"))
	require.Equal(t, exitFailed, status)
	require.Equal(t, "vramyard: "+budget+": 9 violated: train, layouts\n", errs)
	for name, text := range map[string]string{"gate.txt": out, "gate.json": content(t, at("o.json")),
		"gate.md": content(t, at("o.md")), "gate.xml": content(t, at("o.xml")), "gate.sarif": content(t, at("o.sarif"))} {
		golden(t, name, strings.ReplaceAll(text, budget, "budget.yaml"))
	}
	shown, _, _ := strings.Cut(out, "layouts:")
	onPage(t, "violation", shown)
	var junit struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal([]byte(content(t, at("o.xml"))), &junit))
	cases, failed := 0, 0
	for _, s := range junit.Suites {
		for _, c := range s.Cases {
			if cases++; c.Failure != nil {
				failed++
			}
		}
	}
	require.Equal(t, []int{cases, failed}, []int{junit.Tests, junit.Failures})
	require.Equal(t, 9, failed)
}

// TestUpdateIsARatchet lowers and raises a budget.
func TestUpdateIsARatchet(t *testing.T) {
	budget := filepath.Join(t.TempDir(), "budget.yaml")
	less := write(t, "train.trace", histories("")["alone"])
	more := write(t, "train.trace", histories("a 9 40MiB tag=activation:added\n")["alone"])
	gated := func(status int, args ...string) {
		t.Helper()
		got, out, errs := command(t, append([]string{"gate", "--baseline", budget}, args...)...)
		require.Equal(t, status, got, out+errs)
	}
	gated(exitDone, "--update", more)
	gated(exitDone, less)
	high := content(t, budget)
	gated(exitDone, "--update", less)
	low := content(t, budget)
	require.NotEqual(t, high, low)
	gated(exitFailed, more)
	gated(exitFailed, "--update", more)
	require.Equal(t, low, content(t, budget), "never up without the word")
	gated(exitDone, "--update=raise", more)
	require.Equal(t, high, content(t, budget))
	gated(exitDone, "--update=raise", less)
	require.Equal(t, low, content(t, budget))
	small := write(t, "train.trace", histories("a 9 2MiB tag=activation:added\nf 9\n")["alone"])
	require.Contains(t, succeed(t, "gate", "--baseline", budget, small),
		"Blocks changed and no figure is violated: 1 block of 2.00 MiB added at activation:added.\n")

	tolerant := strings.Replace(low, "budgets:", "tolerance:\n  min_capacity: 100%\n  peak_reserved: 1GiB\n  peak_live: "+
		"40MiB\n  device_calls: 9\nbudgets:", 1)
	require.NoError(t, os.WriteFile(budget, []byte(tolerant), 0o600))
	gated(exitDone, "--update", more)
	require.Equal(t, tolerant, content(t, budget), "a tolerance does not raise the budget")
	require.NoError(t, os.WriteFile(budget, []byte(strings.ReplaceAll(tolerant, "40MiB", "41943039")), 0o600))
	gated(exitFailed, more)
}

func TestGateRefuses(t *testing.T) {
	train := write(t, "train.trace", histories("")["alone"])
	shorter := write(t, "train.trace", strings.ReplaceAll(histories("")["alone"], `mark "step 2"`, `mark "end"`))
	budget := filepath.Join(t.TempDir(), "budget.yaml")
	succeed(t, "gate", "--baseline", budget, "--update", train)
	text := content(t, budget)
	other := write(t, "trian.trace", small)
	const own = "schema: vramyard-budget/1\nbudgets: {train: {strategy: caching, step: serve}}\n"
	const empty = "schema: vramyard-budget/1\nbudgets: {train: {strategy: caching, empty: {}}}\n"
	const amount = "want a share such as 2%, or an amount such as 10MiB"
	for _, c := range []struct{ budget, path, want string }{
		{text, shorter, "the recording has 2 steps, the budget is of 3: record as many"},
		{text, other, `no budget has the name "trian": did you mean "train"? --update adds it`},
		{"", train, `want "vramyard-budget/1" under the key schema`},
		{"budgets: {}\n", train, `line 1, column 1: want "vramyard-budget/1" under the key schema`},
		{strings.Replace(text, "warmup: 1", "warmup: 3", 1), train, "warmup 3: want fewer than the 3 steps"},
		{strings.Replace(text, "warmup: 1", "warmup: 0", 1), train, `the budget has figures of the state "warm"`},
		{strings.Replace(text, "warmup:", "warm_up:", 1), train, `unknown key "warm_up": did you mean "warmup"?`},
		{strings.Replace(text, "peak_live:", "peak_life:", 1), train, `unknown figure "peak_life": did you mean "peak_live"?`},
		{strings.Replace(text, "warmup: 1", "warmup: -1", 1), train, "want a number, not negative"},
		{strings.Replace(text, "budgets:", "tolerance: {peak_live: 2kg}\nbudgets:", 1), train,
			`line 5, column 24: tolerance "2kg": want a share such as 2%, or an amount such as 10MiB`},
		{strings.Replace(text, "budgets:", "tolerance: {device_calls: 2MiB}\nbudgets:", 1), train, `unit "MiB": device_calls`},
		{strings.Replace(text, "budgets:", "tolerance: {peak_live: [2%]}\nbudgets:", 1), train, amount},
		{strings.Replace(text, "budgets:", "tolerance: {peak_live: {more: 2%}}\nbudgets:", 1), train, amount},
		{strings.Replace(text, "budgets:", "tolerance: {peak_live: ''}\nbudgets:", 1), train, amount},
		{strings.Replace(text, "budgets:", "tolerance: {peak_live: }\nbudgets:", 1), train, amount},
		{strings.Replace(text, "budgets:", "tolerance: {peak_live: null}\nbudgets:", 1), train, amount},
		{strings.Replace(text, "blocks_by: tag", "blocks_by: stack", 1), train,
			`want "call site", "tag" or "size" under the key blocks_by`},
		{strings.Replace(text, "    blocks_by: tag\n", "", 1), train, "under the key blocks_by"},
		{strings.Replace(text, "steps: 3", "steps: 0", 1), train,
			"warmup 1: want 0, because the work is the whole recording"},
		{empty, train, `the budget "train" has no figures: --update adds them`},
		{strings.Replace(text, `"caching"`, `"cashing"`, 1), train, `budget "train": unknown strategy "cashing"`},
		{strings.Replace(text, "min_capacity: ", "min_capacity: x", 1), train,
			"want a number of bytes, or a size such as 24GiB"},
		{text + "---\na: 1\n", train, "want one document"},
		{own, train, `the budget "train" has no figures: --update adds them`},
		{strings.Replace(text, "steps:", "step: serve\n    steps:", 1), train, `the recording has no mark "serve"`},
	} {
		require.NoError(t, os.WriteFile(budget, []byte(c.budget), 0o600))
		status, out, errs := command(t, "gate", "--baseline", budget, c.path)
		require.Equal(t, exitTrouble, status, errs)
		require.Empty(t, out)
		require.Contains(t, errs, c.want)
	}
	status, _, errs := command(t, "gate", "--baseline", budget+".none", train)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, errs, "budget.yaml.none: no such file or directory: --update writes it")
	status, _, errs = command(t, "gate", "--baseline", budget, "--update=up", train)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, errs, "want lower or raise")
}

// TestEntryOfYourOwn updates entries that a person wrote.
func TestEntryOfYourOwn(t *testing.T) {
	budget := filepath.Join(t.TempDir(), "budget.yaml")
	train := write(t, "train.trace", histories("")["alone"])
	const noList = "The budget lists no blocks, so none are compared: --update lists them"
	for _, c := range []struct {
		entry   string
		status  int
		shown   string
		written string // after --update, with figures written as F
	}{
		{"steps: 2, warmup: 0", exitDone, "steps 1 to 2 after 0 of warm-up", "steps: 2 warmup: 0 empty: F F F F written"},
		{"steps: 1", exitDone, "steps 1 to 1 after 0 of warm-up", "steps: 1 warmup: 0 empty: F F F F written"},
		{"steps: 0", exitDone, "The budget is of the whole recording; the marks show 3 steps.",
			"steps: 0 warmup: 0 empty: F F F F written"},
		{"warmup: 2", exitDone, "steps 3 to 3 after 2 of warm-up", "steps: 3 warmup: 2 empty: F F F F warm: F F F F written"},
		{"empty: {}, warm: {}", exitDone, "added", "steps: 3 warmup: 1 empty: F F F F warm: F F F F written"},
		{"empty: {}, warm: {peak_live: 1GiB}", exitDone, "lowered", "steps: 3 warmup: 1 warm: F written"},
		{"empty: {peak_live: 1MiB}", exitFailed, noList, "steps: 3 warmup: 1 empty: F }"},
	} {
		require.NoError(t, os.WriteFile(budget,
			[]byte("schema: vramyard-budget/1\nbudgets: {train: {strategy: bfc, "+c.entry+"}}\n"), 0o600))
		status, out, errs := command(t, "gate", "--baseline", budget, "--update", train)
		require.Equal(t, c.status, status, "%s: %s", c.entry, errs)
		require.Contains(t, out, c.shown, c.entry)
		require.NotContains(t, out, "written by version")
		require.NotContains(t, out, "blocks that explain it")
		_, got, _ := strings.Cut(content(t, budget), "strategy: \"bfc\"\n")
		got = regexp.MustCompile(`\w+: \d+( +# .*)?\n`).ReplaceAllStringFunc(got, func(line string) string {
			if strings.HasPrefix(line, "steps") || strings.HasPrefix(line, "warmup") {
				return line
			}
			return "F "
		})
		got = strings.Join(strings.Fields(got+" }"), " ")
		require.True(t, strings.HasPrefix(got, c.written), "%s: %s", c.entry, got)
		status, _, errs = command(t, "gate", "--baseline", budget, train)
		require.Equal(t, c.status, status, "the file can be read again: %s", errs)
	}
}

// TestOneMarkIsAStep judges a request of a server after other work.
func TestOneMarkIsAStep(t *testing.T) {
	budget := write(t, "budget.yaml",
		"schema: vramyard-budget/1\nbudgets: {serve: {strategy: caching, step: request 0}}\n")
	serve := func(before, number string) string {
		return write(t, "serve.trace", "a 1 30MiB\n"+before+"mark \"request "+number+"\"\na 2 8MiB\nmark \"attention\"\n"+
			"a 3 70MiB\nf 2\nf 3\nmark \"request "+number+" end\"\na 4 900MiB\n")
	}
	require.Contains(t, succeed(t, "gate", "--baseline", budget, "--update", serve("", "0")), "108.00 MiB")
	require.Contains(t, content(t, budget), "    step: \"request 0\"\n    steps: 1\n    warmup: 0\n    empty:\n")
	require.NotContains(t, succeed(t, "gate", "--baseline", budget, serve("a 8 2GiB\nf 8\n", "17")), "improved")
}

// TestGateSaysWhatIsNotCanonical takes recordings whose figures depend on their history.
func TestGateSaysWhatIsNotCanonical(t *testing.T) {
	budget := filepath.Join(t.TempDir(), "budget.yaml")
	for text, want := range map[string]string{
		small: "No marks show steps: the work is the whole recording.",
		"live 1 1MiB\n" + strings.ReplaceAll(small, "a 1 1000", "a 9 9\nf 9"): "The figures depend on the moment at which " +
			"the recording began",
		"a 1 2MiB\nrefused 1GiB\na 2 1MiB\n": "1 request was refused when recorded, which depends on the recorded pool",
		"a 1 2MiB\nuse 1 4\nf 1\na 2 1MiB\ndone 1\n": "1 free completed later than requested, because other streams used " +
			"the memory",
	} {
		require.Contains(t, succeed(t, "gate", "--baseline", budget, "--update=raise", write(t, "x.trace", text)), want)
		require.NoError(t, os.Remove(budget))
	}
	require.Contains(t, succeed(t, "gate", "--baseline", budget, "--update", vector("skip_free_requested")),
		"The figures are not canonical where other streams use blocks")
	status, _, errs := command(t, "gate", "--baseline", budget, "--update", vector("state_only"))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, errs, "want a recording with a history of requests")
}
