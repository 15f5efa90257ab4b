package diff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/diff"
)

// file returns a comparison of runs, each given as its fields.
func file(runs ...string) string {
	return `{"schema":"vramyard-compare/1","version":"1","device":{"capacity":0},"runs":[` + strings.Join(runs, ",") + `]}`
}

// of returns a run of a strategy on a trace, with more fields.
func of(trace, hash, strategy, config, more string) string {
	return fmt.Sprintf(`{"trace":%q,"trace_sha256":%q,"strategy":%q,"config":%s%s}`, trace, hash, strategy, config, more)
}

// read reads a result that is right.
func read(t *testing.T, text string) *diff.Result {
	t.Helper()
	r, err := diff.Read(strings.NewReader(text), nil)
	require.NoError(t, err, "%s", text)
	return r
}

// compared compares two results of one schema.
func compared(t *testing.T, a, b string, all bool) *diff.Diff {
	t.Helper()
	d, err := diff.Compare(read(t, a), read(t, b), all)
	require.NoError(t, err)
	return d
}

// judged judges B against A by one condition.
func judged(t *testing.T, a, b, condition string) (diff.Verdict, error) {
	t.Helper()
	d := compared(t, a, b, false)
	c, err := diff.ParseCondition(condition)
	require.NoError(t, err)
	if err := d.Judge([]diff.Condition{c}); err != nil {
		return diff.Verdict{}, err
	}
	return d.Verdicts[0], nil
}

func TestChangesMeasureDifferences(t *testing.T) {
	d := compared(t,
		file(of("t", "h", "bfc", `{}`,
			`,"peak_reserved_bytes":100,"oom_count":0,"ns_per_op":10,"probe_count":7,"x":{"y_ns":5,"list":[1,2]},"starts":true`)),
		file(of("t", "h", "bfc", `{}`,
			`,"peak_reserved_bytes":150,"oom_count":2,"ns_per_op":20,"probe_count":7.0,"x":{"y_ns":4,"list":[1,3]},"starts":true`)), false)
	var got []string
	for _, c := range d.Pairs[0].Changes {
		line := fmt.Sprintf("%s %s %v: %v %v", c.Figure, c.Unit, c.Measured, c.A, c.B)
		if c.Absolute != nil {
			line += fmt.Sprintf(" %v", *c.Absolute)
		}
		if c.Relative != nil {
			line += fmt.Sprintf(" %v", *c.Relative)
		}
		got = append(got, line)
	}
	require.Equal(t, []string{
		"oom_count number false: 0 2 2",
		"x.list number false: [1,2] [1,3]",
		"peak_reserved_bytes bytes false: 100 150 50 0.5",
		"x.y_ns ns false: 5 4 -1 -0.2",
		"ns_per_op ns true: 10 20 10 1",
	}, got)
	exact, measured := d.Count()
	require.Equal(t, [2]int{4, 1}, [2]int{exact, measured})
}

func TestMeasuredTimesDoNotCountAsDifferences(t *testing.T) {
	a, b := file(of("t", "h", "bfc", `{}`, `,"ns_per_op":1`)), file(of("t", "h", "bfc", `{}`, `,"ns_per_op":2`))
	require.True(t, compared(t, a, b, false).Equal())
	require.False(t, compared(t, a, file(of("t", "h", "bfc", `{}`, `,"ns_per_op":1,"device_time_ns":2`)), false).Equal(),
		"the time of the model is exact")
}

func TestRunsAreMatchedByTraceAndStrategy(t *testing.T) {
	// Two runs each, so that the rule for results of one run stays out of it.
	other := of("else", "e", "tlsf", `{}`, "")
	for name, c := range map[string]struct {
		a, b string
		want diff.Match // "" if they are not matched
	}{
		"all":      {of("t", "h", "bfc", `{"a":1,"b":2}`, ""), of("t", "h", "bfc", `{"b":2,"a":1}`, ""), diff.MatchAll},
		"renamed":  {of("t", "h", "bfc", `{}`, ""), of("u", "h", "bfc", `{}`, ""), diff.MatchRenamed},
		"recorded": {of("t", "h", "bfc", `{}`, ""), of("t", "i", "bfc", `{}`, ""), diff.MatchRecorded},
		"config":   {of("t", "h", "bfc", `{"a":1}`, ""), of("t", "h", "bfc", `{"a":2}`, ""), diff.MatchConfig},
		"both":     {of("t", "h", "bfc", `{"a":1}`, ""), of("t", "i", "bfc", `{"a":2}`, ""), diff.MatchConfig},
		"strategy": {of("t", "h", "bfc", `{}`, ""), of("t", "h", "bfc:growth", `{}`, ""), ""},
		"trace":    {of("t", "h", "bfc", `{}`, ""), of("u", "i", "bfc", `{}`, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := compared(t, file(c.a, other), file(other, c.b), false)
			require.Equal(t, diff.MatchAll, d.Pairs[len(d.Pairs)-1].Match)
			if c.want == "" {
				require.Len(t, d.Pairs, 1)
				require.Len(t, d.OnlyA, 1)
				require.Len(t, d.OnlyB, 1)
				return
			}
			require.Len(t, d.Pairs, 2)
			require.Equal(t, c.want, d.Pairs[0].Match)
		})
	}
	d := compared(t, file(of("t", "h", "bfc", `{}`, "")), file(of("u", "i", "tlsf", `{}`, "")), false)
	require.Equal(t, diff.MatchOnly, d.Pairs[0].Match, "results of one run each are about one thing")
}

func TestTheBestMatchIsTakenFirst(t *testing.T) {
	// The second of A is the first of B to the last setting; what is left differs in its
	// configuration.
	a := file(of("t", "h", "bfc", `{"x":1}`, ""), of("t", "h", "bfc", `{"x":2}`, ""))
	b := file(of("t", "h", "bfc", `{"x":2}`, ""), of("t", "h", "bfc", `{"x":3}`, ""))
	d := compared(t, a, b, false)
	require.Len(t, d.Pairs, 2)
	require.Equal(t, diff.MatchConfig, d.Pairs[0].Match)
	require.Equal(t, diff.MatchAll, d.Pairs[1].Match)
}

func TestOneSettingDoesNotStandForAnother(t *testing.T) {
	a := file(of("t", "h", "caching", `{"conf":"a"}`, ""), of("t", "h", "caching", `{"conf":"b"}`, ""))
	b := file(of("t", "h", "caching", `{"conf":"c"}`, ""), of("t", "h", "caching", `{"conf":"d"}`, ""))
	d := compared(t, a, b, false)
	require.Empty(t, d.Pairs)
	require.Len(t, d.OnlyA, 2)
	require.Len(t, d.OnlyB, 2)
}

// TestOpenBracketsAreNotFailures judges minima of which only an upper end is known.
func TestOpenBracketsAreNotFailures(t *testing.T) {
	run := func(more string) string { return file(of("llama", "h", "caching", `{}`, more)) }
	bracket, exact := run(`,"min_capacity_bytes":null,"completes_at_bytes":7`),
		run(`,"min_capacity_bytes":5,"completes_at_bytes":5`)
	for _, condition := range []string{"min_capacity_bytes>24GiB", "min_capacity_bytes>+2%"} {
		_, err := judged(t, bracket, bracket, condition)
		require.ErrorContains(t, err, "has this figure to judge")
	}
	v, err := judged(t, exact, bracket, "min_capacity_bytes>+2%")
	require.NoError(t, err)
	require.Equal(t, "B has no value", v.Violations[0].Why)
	v, err = judged(t, bracket, exact, "min_capacity_bytes>24GiB")
	require.NoError(t, err)
	require.Empty(t, v.Violations)
	v, err = judged(t, bracket, bracket, "completes_at_bytes>24GiB")
	require.NoError(t, err)
	require.Empty(t, v.Violations)
	none := run(`,"min_capacity_bytes":null,"completes_at_bytes":null`)
	v, err = judged(t, exact, none, "min_capacity_bytes>24GiB")
	require.NoError(t, err)
	require.Equal(t, "A completes and B does not", v.Violations[0].Why)
}

func TestConditionsJudge(t *testing.T) {
	run := func(more string) string { return file(of("llama", "h", "caching:split", `{}`, more)) }
	for _, c := range []struct {
		a, b, condition, want string // want: "" kept, else why
	}{
		{`,"min_capacity_bytes":100`, `,"min_capacity_bytes":102`, "min_capacity_bytes>+2%", ""},
		{`,"min_capacity_bytes":100`, `,"min_capacity_bytes":103`, "min_capacity_bytes>+2%", "beyond the limit"},
		{`,"min_capacity_bytes":100`, `,"min_capacity_bytes":102`, "min_capacity_bytes>=+2%", "beyond the limit"},
		{`,"min_capacity_bytes":100`, `,"min_capacity_bytes":null`, "min_capacity_bytes>+2%", "A completes and B does not"},
		{`,"min_capacity_bytes":100`, `,"min_capacity_bytes":null`, "min_capacity_bytes<-2%", "A completes and B does not"},
		{`,"min_capacity_bytes":100`, `,"min_capacity_bytes":null`, "min_capacity_bytes>24GiB", "A completes and B does not"},
		{`,"min_capacity_bytes":null`, `,"min_capacity_bytes":null`, "min_capacity_bytes>+2%", ""},
		{`,"min_capacity_bytes":null`, `,"min_capacity_bytes":null`, "min_capacity_bytes>=+0", ""},
		{`,"min_capacity_bytes":null`, `,"min_capacity_bytes":null`, "min_capacity_bytes>24GiB", "beyond the limit"},
		{`,"min_capacity_bytes":null`, `,"min_capacity_bytes":5`, "min_capacity_bytes>+2%", ""},
		{`,"min_capacity_bytes":null`, `,"min_capacity_bytes":5`, "min_capacity_bytes!=+0", "beyond the limit"},
		{`,"failure_above_bytes":null`, `,"failure_above_bytes":5`, "failure_above_bytes>+0", "beyond the limit"},
		{`,"failure_above_bytes":5`, `,"failure_above_bytes":null`, "failure_above_bytes>+0", ""},
		{`,"metadata_bytes":5`, `,"metadata_bytes":null`, "metadata_bytes>+5%", "B has no value"},
		{`,"metadata_bytes":5`, ``, "metadata_bytes>+5%", "B has no value"},
		{`,"oom_count":0`, `,"oom_count":1`, "oom_count>0", "beyond the limit"},
		{`,"oom_count":0`, `,"oom_count":0`, "oom_count>0", ""},
		{`,"oom_count":0`, `,"oom_count":1`, "oom_count>+2%", "beyond the limit"},
		{`,"oom_count":3`, `,"oom_count":3`, "oom_count>+0", ""},
		{`,"peak_reserved_bytes":104857600`, `,"peak_reserved_bytes":209715200`, "peak_reserved_bytes>+100MiB", ""},
		{`,"peak_reserved_bytes":104857600`, `,"peak_reserved_bytes":209715201`, "peak_reserved_bytes>+100MiB",
			"beyond the limit"},
		{`,"peak_reserved_bytes":100`, `,"peak_reserved_bytes":99`, "peak_reserved_bytes>-2%", "beyond the limit"},
		{`,"peak_reserved_bytes":18446744073709551614`, `,"peak_reserved_bytes":18446744073709551615`,
			"peak_reserved_bytes>+0", "beyond the limit"},
		{`,"device_time_ns":1000000`, `,"device_time_ns":4000001`, "device_time_ns>3.5ms", "beyond the limit"},
		{`,"reservation_waste":0.1`, `,"reservation_waste":0.2`, "reservation_waste>0.25@caching*", ""},
		{`,"reservation_waste":-1`, `,"reservation_waste":-0.9`, "reservation_waste>+5%@*@ll?ma", "beyond the limit"},
		{`,"starts":true`, `,"starts":false`, "starts<1", "beyond the limit"},
	} {
		t.Run(c.condition+" "+c.a+c.b, func(t *testing.T) {
			v, err := judged(t, run(c.a), run(c.b), c.condition)
			require.NoError(t, err)
			require.Equal(t, 1, v.Judged)
			if c.want == "" {
				require.Empty(t, v.Violations)
			} else {
				require.Len(t, v.Violations, 1)
				require.Equal(t, c.want, v.Violations[0].Why)
			}
		})
	}
}

func TestRunsOfOneSideAreJudgedAsFarAsTheyCan(t *testing.T) {
	bfc := of("t", "h", "bfc", `{}`, `,"oom_count":0`)
	a := file(bfc, of("t", "h", "tlsf", `{}`, `,"oom_count":0`))
	b := file(bfc, of("t", "h", "slab", `{}`, `,"oom_count":1`), of("t", "h", "buddy", `{}`, `,"oom_count":0`))
	v, err := judged(t, a, b, "oom_count>0")
	require.NoError(t, err)
	require.Equal(t, 4, v.Judged)
	require.Len(t, v.Violations, 2)
	require.Equal(t, "B has no such run", v.Violations[0].Why)
	require.Equal(t, "slab", v.Violations[1].Strategy)
	v, err = judged(t, a, b, "oom_count>+0")
	require.NoError(t, err)
	require.Equal(t, [3]int{2, 2, 1}, [3]int{v.Judged, v.Unjudged, len(v.Violations)})
}

func TestConditionsThatCannotFailAreErrors(t *testing.T) {
	a := file(of("t", "h", "bfc", `{}`, `,"oom_count":0,"metadata_bytes":null,"name":"x"`))
	for condition, want := range map[string]string{
		"oom>0":               `unknown figure "oom": did you mean "oom_count"? want one of metadata_bytes, oom_count`,
		"name>0":              `unknown figure "name": want one of metadata_bytes, oom_count`,
		"oom_count>0@tlsf":    "no selected run",
		"oom_count>0@bfc@u*":  "no selected run",
		"metadata_bytes>+1%":  "no selected run",
		"metadata_bytes>1ms":  `unit "ms": metadata_bytes is in bytes`,
		"oom_count>+1GiB":     `unit "GiB": oom_count is in number`,
		"metadata_bytes>1GiB": "no selected run",
	} {
		_, err := judged(t, a, a, condition)
		require.ErrorContains(t, err, want, condition)
	}
}

func TestWrongConditionsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "want a figure",
		"oom_count":                      "want a figure",
		">0":                             "want a figure",
		"oom_count=0":                    "want a figure",
		"oom_count!0":                    "want a figure",
		"oom count>0":                    "want a figure",
		"oom_count>":                     "want a limit",
		"oom_count>+":                    "want a limit",
		"oom_count>x":                    "want a limit",
		"oom_count>1.":                   "want a limit",
		"oom_count>.5":                   "want a limit",
		"oom_count>1.2.3":                "want a limit",
		"oom_count>1e3":                  `unit "e3"`,
		"oom_count>--1":                  "want a limit",
		"oom_count>5%":                   "want a sign",
		"oom_count>5MB":                  `unit "MB": want one of % B KiB MiB GiB TiB ns us ms s`,
		"oom_count>5@":                   "want @strategy",
		"oom_count>5@a@":                 "want @strategy",
		strings.Repeat("a", 2000) + ">1": "want a figure",
	} {
		_, err := diff.ParseCondition(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestPatternsCoverTheWholeName(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"caching", "caching", true}, {"caching", "caching:split", false}, {"caching*", "caching", true},
		{"*split", "caching:split", true}, {"c*:s*t", "caching:split", true}, {"c*:s*x", "caching:split", false},
		{"?lab", "slab", true}, {"?lab", "lab", false}, {"*", "a/b", true}, {"*a*a*b", strings.Repeat("a", 50), false},
	} {
		a := file(of("t", "h", c.name, `{}`, `,"n":1`))
		_, err := judged(t, a, a, "n>5@"+c.pattern)
		require.Equal(t, c.want, err == nil, "%s %s", c.pattern, c.name)
	}
}

// randomFile makes up a result of a few runs out of few names, so that they match in every way.
func randomFile(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var runs []string
	for range r.IntN(6) {
		more := ""
		for _, name := range []string{"a_bytes", "b_count", "ns_per_op", "min_capacity_bytes"} {
			if r.IntN(4) > 0 {
				more += fmt.Sprintf(",%q:%s", name, pick("1", "2", "2.5", "null", "0", "-1", "1e300", "true", `"x"`, "[1]", "[]"))
			}
		}
		runs = append(runs, of(pick("t", "u"), pick("h", "i"), pick("bfc", "tlsf"), pick(`{}`, `{"a":1}`), more))
	}
	return file(runs...)
}

// TestDiffsMirror exchanges A and B: what was gained is lost, and nothing else changes. A result
// does not differ from itself.
func TestDiffsMirror(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b := randomFile(r), randomFile(r)
		self := compared(t, a, a, false)
		require.True(t, self.Equal(), "seed %d", seed)
		for _, p := range self.Pairs {
			require.Empty(t, p.Changes, "seed %d", seed)
			require.Equal(t, diff.MatchAll, p.Match, "seed %d", seed)
		}
		there, back := compared(t, a, b, true), compared(t, b, a, true)
		require.Equal(t, there.Equal(), back.Equal(), "seed %d", seed)
		require.Equal(t, there.OnlyA, back.OnlyB, "seed %d", seed)
		require.Equal(t, there.OnlyB, back.OnlyA, "seed %d", seed)
		require.Equal(t, pairsOf(t, there, false), pairsOf(t, back, true), "seed %d", seed)
	}
}

// pairsOf returns the changes of each pair as text, sorted by nothing but the runs, mirrored if
// asked for.
func pairsOf(t *testing.T, d *diff.Diff, mirrored bool) map[string]int {
	t.Helper()
	lines := map[string]int{}
	for _, p := range d.Pairs {
		if mirrored {
			p.A, p.B = p.B, p.A
		}
		for _, c := range p.Changes {
			if mirrored {
				c.A, c.B = c.B, c.A
				c.Relative = nil
				if c.Absolute != nil {
					*c.Absolute = 0 - *c.Absolute
				}
			}
			c.Relative = nil // of A, so another share
			text, err := json.Marshal([]any{p.A, p.B, p.Match, c})
			require.NoError(t, err)
			lines[string(text)]++
		}
	}
	return lines
}

func TestHostileResultsAreRefused(t *testing.T) {
	ok := of("t", "h", "bfc", `{}`, "")
	for text, want := range map[string]string{
		"":                                       "JSON ends early",
		"{":                                      "JSON ends early",
		"null":                                   `not a result of this program but text that begins with "null": want --json output`,
		"trash":                                  `not a result of this program but text that begins with "trash": want --json output`,
		"[]":                                     "not a result of this program but a list in JSON: want --json output",
		"trace,trace_sha256,strategy\nt,h,bfc\n": `not a result of this program but CSV that begins with "trace,trace_sha256,strategy": want --json output`,
		"PAR1\x15\x04":                           "not a result of this program but a Parquet file: want --json output",
		"\x80\x04\x95\xff":                       "not a result of this program but a binary file: want --json output",
		"{}":                                     `want an object with a field "schema"`,
		`{"schema":1}`:                           `want an object with a field "schema"`,
		`{"schema":"other/1"}`:                   `schema "other/1": want one of vramyard-bench/1, vramyard-compare/1`,
		`{"schema":"vramyard-compare/2"}`:        `schema "vramyard-compare/2": want one of`,
		`{"schema":"vramyard-compare/1"}`:        `"runs": want a list of runs`,
		`{"schema":"vramyard-compare/1","runs":{}}`: `"runs": want a list of runs`,
		file(`3`):                                                       `"runs", run 0: want an object`,
		file(`{}`):                                                      `"runs", run 0: want "strategy" and "trace"`,
		file(ok, `{"trace":"t","strategy":4}`):                          `"runs", run 1: "strategy": want a string`,
		file(`{"trace":["t"],"strategy":"s"}`):                          `"trace": want a string`,
		file(of("t", "h", "s", `{}`, `,"n":1,"n":2`)):                   `"runs.0.n": given twice`,
		file(of("t", "h", "s", `{}`, `,"a.b":1,"a":{"b":2}`)):           `duplicate figure "a.b"`,
		file(of("t", "h", "s", `{}`, `,"n":NaN`)):                       "invalid character 'N'",
		file(of("t", "h", "s", `{}`, `,"n":1e999`)):                     "1e999: number too long or too large",
		file(of("t", "h", "s", `{}`, `,"n":-1e999`)):                    "number too long or too large",
		file(of("t", "h", "s", `{}`, `,"n":`+strings.Repeat("9", 100))): "number too long or too large",
		file(ok) + "{}":                                                 "data after the result",
		file(ok)[:60]:                                                   "JSON ends early",
		`{"a":` + strings.Repeat("[", 100_000):                          "objects and lists nested more than 32 deep",
		strings.Repeat(`{"a":`, 100_000):                                "objects and lists nested more than 32 deep",
		`{"schema":"vramyard-tune/1","preset":3}`:                       `"preset.runs": want a list of runs`,
		"\x1f\x8b\x08nonsense":                                          "gzip",
	} {
		_, err := diff.Read(strings.NewReader(text), nil)
		require.ErrorContains(t, err, want, "%.200s", text)
	}
	_, err := diff.Read(strings.NewReader(strings.Repeat(" ", 1<<26+1)), nil)
	require.ErrorContains(t, err, "more than 67108864 bytes")
	small := read(t, file(of("t", "h", "s", `{}`, `,"n":1e-999999999`)))
	require.Zero(t, small.Runs[0].Figures[0].Value.Number().Sign(), "as every reader of JSON takes it")
}

func TestResultsOfTwoCommandsAreNotCompared(t *testing.T) {
	_, err := diff.Compare(read(t, file()), read(t, `{"schema":"vramyard-verify/1","trace":"t","strategy":"s"}`), false)
	require.ErrorContains(t, err,
		"schema vramyard-compare/1 of A and vramyard-verify/1 of B: want results of the same command")
}

// FuzzCondition reads anything, and what is a condition is written and read as the same one.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{"min_capacity_bytes>+2%", "oom_count > 0", "a>=-1.5GiB@x*@y?", "a!=+0@ b ", "a<1ns",
		"=>", "a>1%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := diff.ParseCondition(s)
		if err != nil {
			return
		}
		again, err := diff.ParseCondition(c.String())
		require.NoError(t, err, "%q", s)
		require.Equal(t, c, again)
	})
}

// FuzzRead reads anything; what is a result does not differ from itself, and is judged without a
// panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(file(of("t", "h", "bfc", `{}`, `,"min_capacity_bytes":1,"x":{"y":[1,{}]},"n":null`))))
	f.Add(
		[]byte(
			`{"schema":"vramyard-tune/1","strategy":"s","preset":{"config":{},"runs":[]},"smallest":{"runs":[]},"fastest":{"runs":[]}}`))
	f.Add([]byte(`{"schema":"vramyard-replay/1","strategy":"s","trace":"t","ns_per_op":1e308}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := diff.Read(strings.NewReader(string(data)), nil)
		if err != nil {
			return
		}
		d, err := diff.Compare(r, r, true)
		require.NoError(t, err)
		require.True(t, d.Equal())
		_, err = json.Marshal(d)
		require.NoError(t, err)
		c, err := diff.ParseCondition("min_capacity_bytes>+2%")
		require.NoError(t, err)
		if d.Judge([]diff.Condition{c}) == nil {
			require.Zero(t, d.Violated())
		}
	})
}

// TestAGridIsComparedPointByPoint has two points of one line, of which only one is in both results.
func TestAGridIsComparedPointByPoint(t *testing.T) {
	point := func(ratio, verdict string) string {
		return fmt.Sprintf(
			`{"model":"m","log_sha256":"h","strategy":"bfc","ladder":"none","heuristic":"eq","ratio":%s,"verdict":%q}`,
			ratio, verdict)
	}
	grid := func(points ...string) string {
		return `{"schema":"vramyard-remat/1","limit":2,"logs":[],"lines":[],"runs":[` + strings.Join(points, ",") + `]}`
	}
	d := compared(t, grid(point("0.5", "thrash"), point("0.6", "ok")),
		grid(point("0.6", "thrash"), point("0.7", "ok")), false)
	require.Len(t, d.Pairs, 1)
	require.Equal(t, "bfc none eq 0.6", d.Pairs[0].A.Strategy)
	require.Equal(t, "m", d.Pairs[0].A.Trace)
	require.Len(t, d.Pairs[0].Changes, 1)
	require.Equal(t, "verdict", d.Pairs[0].Changes[0].Figure)
	require.Len(t, d.OnlyA, 1)
	require.Len(t, d.OnlyB, 1)
}
