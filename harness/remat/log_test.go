package remat_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace"
)

const (
	start = `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}` + "\n"
	x     = `{"INSTRUCTION":"CONSTANT","NAME":"x"}` + "\n" + `{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"8"}` + "\n"
	callY = `{"INSTRUCTION":"CALL","NAME":"f","RESULT":["y"],"ARGS":["x"],"TIME":"5"}` + "\n"
	sizeY = `{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"4"}` + "\n"
	ownY  = `{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}` + "\n"
	y     = callY + sizeY + ownY
)

// read reads a log out of a text.
func read(t *testing.T, text string) *remat.Schedule {
	t.Helper()
	s, err := remat.Read(strings.NewReader(text), "t", nil)
	require.NoError(t, err)
	return s
}

func TestLogIsLoweredToSteps(t *testing.T) {
	s := read(t, `{"INSTRUCTION":"RELEASE","NAME":"warm"}`+"\n"+start+x+y+
		`{"INSTRUCTION":"COPY","DST":"z","SRC":"y"}`+"\n"+
		`{"INSTRUCTION":"CALL","NAME":"view","RESULT":["v"],"ARGS":["y","y"],"TIME":"1"}`+"\n"+
		`{"INSTRUCTION":"MEMORY","NAME":"v","MEMORY":"4"}`+"\n"+`{"INSTRUCTION":"ALIAS","NAME":"v","ALIAS":"1"}`+"\n"+
		`{"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":["v","x"],"MUTATE":[0],"TIME":"2"}`+"\n"+
		`{"INSTRUCTION":"COPY_FROM","DST":"z","SRC":"v"}`+"\n"+
		`{"INSTRUCTION":"RELEASE","NAME":"warm"}`+"\n"+`{"INSTRUCTION":"RELEASE","NAME":"y"}`+"\n")
	require.Equal(t, []remat.Step{
		{Kind: remat.Compute, Of: 0}, {Kind: remat.Compute, Of: 1}, {Kind: remat.Retain, Of: 1},
		{Kind: remat.Compute, Of: 2}, {Kind: remat.Compute, Of: 3}, {Kind: remat.Release, Of: 2},
		{Kind: remat.Release, Of: 1}, {Kind: remat.Retain, Of: 3}, {Kind: remat.Release, Of: 1},
		{Kind: remat.Pin, Of: 0}, {Kind: remat.Pin, Of: 3}, {Kind: remat.Pin, Of: 3},
	}, s.Steps)
	require.Equal(t, []remat.Storage{{Root: 0, Size: 8}, {Root: 1, Size: 4}, {Root: 3, Size: 4}}, s.Storages)
	require.Equal(t, []remat.Tensor{1, 1}, s.Ops[2].Args, "an argument may occur twice")
	require.Zero(t, s.Ops[2].OutputBytes, "a view owns no bytes")
	require.EqualValues(t, 8, s.Cost)
	require.Len(t, s.SHA256, 64)
}

func TestExtendedFieldsAreRead(t *testing.T) {
	s := read(t, start+x+strings.Replace(y, `"TIME":"5"`,
		`"TIME":5,"FLOPS":"7","BYTES":"9","WORKSPACE":"16","RECOMPUTABLE":false,"STREAM":"1","SEED":"-3"`, 1))
	require.EqualValues(t, 16, s.Ops[1].Workspace)
	require.True(t, s.Ops[1].Fixed)
}

func TestWeightsAreWrittenInPlace(t *testing.T) {
	step := `{"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":["x","y"],"MUTATE":[0],"TIME":"2","RECOMPUTABLE":false}` + "\n"
	s := read(t, start+x+y+step+step)
	require.Equal(t, []remat.Storage{{Root: 0, Size: 8}, {Root: 1, Size: 4}}, s.Storages)
	require.Zero(t, s.Ops[3].OutputBytes)
	require.Equal(t, []remat.Tensor{2, 1}, s.Ops[3].Args, "the second step reads what the first wrote")
	require.EqualValues(t, 9, s.Cost)
	for _, copied := range []string{ // what can be made again keeps its source, and so does what may be evicted
		strings.Replace(step, `,"RECOMPUTABLE":false`, "", 1),
		strings.Replace(step, `"MUTATE":[0]`, `"MUTATE":[1]`, 1),
	} {
		require.Len(t, read(t, start+x+y+copied).Storages, 3)
	}
}

func TestInvalidLogsFailWithOneErrorAndAPlace(t *testing.T) {
	long := strings.Repeat("n", 5000)
	for text, want := range map[string]string{
		"":                        "t: no ANNOTATE line with START: everything before START is warm-up",
		x:                         "t: no ANNOTATE line with START: everything before START is warm-up",
		"[]":                      "t:1: want a JSON object",
		"\n":                      "t:1: want a JSON object",
		`{"INSTRUCTION":"CALL"`:   "t:1: JSON ends early",
		`{"INSTRUCTION":"CA`:      "t:1: JSON ends early",
		`{"INSTRUCTION":"COPY"}`:  "t:1: COPY without DST",
		`{"NAME":"x"}`:            "t:1: INSTRUCTION is missing",
		`{"INSTRUCTION":"HALT"}`:  `t:1: unknown INSTRUCTION "HALT"`,
		`{"instruction":"COPY"}`:  `t:1: unknown field "instruction"`,
		`{"INSTRUCTION":{"a":1}}`: "t:1: nested object: want a string, number, boolean or list",
		`{"INSTRUCTION":null}`:    "t:1: INSTRUCTION: want a string",
		`{"ARGS":[[1]]}`:          "t:1: want lists of strings or numbers",
		`{"ARGS":"x"}`:            "t:1: ARGS: want a list",
		`{"NAME":"x","NAME":"x"}`: "t:1: NAME is given twice",
		`{"NAME":"` + long + `"}`: "t:1: NAME: string of 5000 bytes: want at most 4096",
		`{"INSTRUCTION":"RELEASE","NAME":"x"} {}`:            "t:1: text after the JSON object",
		`{"INSTRUCTION":"RELEASE","NAME":"x","TIME":"1"}`:    "t:1: RELEASE has no field TIME",
		`{"INSTRUCTION":"ANNOTATE","ANNOTATION":"X"}`:        "t: no ANNOTATE line with START: everything before START is warm-up",
		start + `{"INSTRUCTION":"ANNOTATE","ANNOTATION":""}`: `t:2: annotation "": want START or BACKWARD`,
		start + sizeY:                                     `t:2: MEMORY of "y" does not follow its CALL or CONSTANT`,
		start + y:                                         `t:2: "x" is not defined`,
		start + x + x:                                     `t:4: "x" is defined already`,
		start + x + callY:                                 `t: the log ends, want MEMORY of "y"`,
		start + x + callY + ownY:                          `t:5: ALIAS of "y": want MEMORY of "y"`,
		start + x + callY + sizeY:                         `t: the log ends, want ALIAS of "y"`,
		start + x + callY + sizeY[:20]:                    "t:5: JSON ends early",
		start + x + callY + sizeY + sizeY:                 `t:6: MEMORY of "y": want ALIAS of "y"`,
		start + strings.Replace(x, `"8"`, `"-8"`, 1):      `t:3: MEMORY: "-8": want a whole number from 0 to 1125899906842624`,
		start + strings.Replace(x, `"8"`, `"8.5"`, 1):     `t:3: MEMORY: "8.5": want a whole number from 0 to 1125899906842624`,
		start + strings.Replace(x, `"8"`, `true`, 1):      `t:3: MEMORY: "true": want a whole number from 0 to 1125899906842624`,
		start + x + strings.Replace(y, `"5"`, `"-5"`, 1):  `t:4: TIME: "-5": want a whole number from 0 to 1125899906842624`,
		start + x + strings.Replace(y, `"-1"`, `"1"`, 1):  "t:6: ALIAS 1: the operator has 1 arguments",
		start + x + strings.Replace(y, `"-1"`, `"-2"`, 1): `t:6: ALIAS: "-2": want a whole number from -1 to 1125899906842624`,
		start + x + `{"INSTRUCTION":"CALL","NAME":"f","RESULT":[],"ARGS":["x"],"TIME":"5"}`:                      "t:4: an operator without outputs: want at least 1",
		start + x + `{"INSTRUCTION":"MUTATE","NAME":"f","ARGS":["x"],"MUTATE":[1],"TIME":"5"}`:                   `t:4: MUTATE "1": want an index of one of 1 arguments`,
		start + x + `{"INSTRUCTION":"MUTATE","NAME":"f","ARGS":["x"],"MUTATE":[0,0],"TIME":"5"}`:                 "t:4: MUTATE 0 is given twice",
		start + x + `{"INSTRUCTION":"MUTATE","NAME":"f","ARGS":["x"],"MUTATE":[],"TIME":"5"}`:                    "t:4: an operator without outputs: want at least 1",
		start + x + `{"INSTRUCTION":"CALL","NAME":"f","RESULT":["x"],"ARGS":["x"],"TIME":"5"}`:                   `t:4: "x" is defined already`,
		start + x + `{"INSTRUCTION":"COPY","DST":"x","SRC":"x"}`:                                                 `t:4: "x" is defined already`,
		start + x + `{"INSTRUCTION":"COPY_FROM","DST":"q","SRC":"x"}`:                                            `t:4: "q" is not defined`,
		start + x + strings.Repeat(`{"INSTRUCTION":"RELEASE","NAME":"x"}`+"\n", 2):                               `t:5: "x": the tensor has no references left`,
		start + x + `{"INSTRUCTION":"RELEASE","NAME":"x"}` + "\n" + `{"INSTRUCTION":"COPY","DST":"z","SRC":"x"}`: `t:5: "x": the tensor has no references left`,
		"\x1f\x8b\x08\x00": "t: gzip data is truncated",
		"\xff\xfe{\x00":    "t:1: NUL byte: this is no text file",
	} {
		_, err := remat.Read(strings.NewReader(text), "t", nil)
		require.EqualError(t, err, want, "%.200s", text)
		_, placed := errors.AsType[*trace.Error](err)
		require.True(t, placed, "%.200s", text)
	}
}

func TestSumsThatOverflowAreRefused(t *testing.T) {
	var b remat.Builder
	huge := remat.Call{Outputs: []remat.Output{{Size: 1 << 50, Alias: remat.NoAlias}}}
	for range 1 << 10 {
		_, err := b.Call(huge)
		require.NoError(t, err)
	}
	_, err := b.Call(huge)
	require.EqualError(t, err, "the sum of all sizes exceeds 1152921504606846976 bytes")
	_, err = b.Call(remat.Call{Cost: 1<<50 + 1, Outputs: huge.Outputs})
	require.EqualError(t, err, "cost 1125899906842625: want 0 to 1125899906842624 ns")
	require.EqualError(t, b.Retain(-1), "there is no tensor -1")
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(start + x + y))
	f.Add([]byte(start + x + `{"INSTRUCTION":"MUTATE","NAME":"f","ARGS":["x"],"MUTATE":[0],"TIME":"5"}`))
	f.Add([]byte(start + x + `{"INSTRUCTION":"COPY","DST":"z","SRC":"x"}` + "\n" +
		`{"INSTRUCTION":"COPY_FROM","DST":"z","SRC":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := remat.Read(bytes.NewReader(raw), "t", nil)
		if err != nil {
			require.Nil(t, s)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, op := range s.Ops {
			for _, a := range op.Args {
				require.Less(t, a, op.First, "arguments come before results")
			}
		}
	})
}

func TestTheLogsOfTheGoldenTablesAreRead(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.log.gz")
	require.NoError(t, err)
	require.Len(t, logs, 8)
	for _, log := range logs {
		_, err := os.Stat(log)
		require.NoError(t, err)
		s, err := remat.ReadFile(log, nil)
		require.NoError(t, err)
		require.NotEmpty(t, s.Steps, log)
	}
}
