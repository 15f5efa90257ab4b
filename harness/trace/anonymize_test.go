package trace_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
)

// anonymous returns the lines of the anonymous form of a text trace, without the first.
func anonymous(t *testing.T, text string) []string {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "x.trace", trace.Options{})
	require.NoError(t, err)
	upper := func(conf string) (string, error) { return strings.ToUpper(conf), nil }
	made, err := trace.Anonymize(tr, trace.Header{}, upper)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, trace.Write(&b, made))
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")[1:]
}

func TestAnonymizeReplacesEqualValuesByEqualOnes(t *testing.T) {
	require.Equal(t, []string{
		`live 0 100 stream=2 tag="tag 1" site=0x1`, `a 1 200 align=512 stream=1 hint=low tag="tag 2" site=0x2 thread=1 life=step`,
		`use 1 2`, `conf A:B`, `pool begin 2 stream=1 options=no_split`, `pool begin 1`, `pool end 2`, `pool release 2`,
		`pause "tag 1"`, `resume "tag 1"`, `f 1`, `a 2 200 tag="tag 1" site=0x1 thread=2`, `refused 5 tag=rounded`,
		`refused 5 tag="tag 3"`, `badfree 1`, `drain 1`, `frontier 7`, `trim`,
	}, anonymous(t, `live 9 100 stream=900 tag=secret site=0xabc
a 77 200 align=512 hint=low stream=33 tag=other site=0xdef thread=4711 life=step t=5
use 77 900
conf a:b
pool begin 60 stream=33 options=no_split t=6
pool begin 50
pool end 60
pool release 60
pause secret
resume secret
f 77 t=9
a 4 200 tag=secret site=0xabc thread=5
refused 5 tag=rounded
refused 5 tag=rounder
badfree 77
drain 33
frontier 7
trim
`))
}

// TestAnonymousMarksKeepTheirMeaning has every property of a mark that steps and strategies use.
func TestAnonymousMarksKeepTheirMeaning(t *testing.T) {
	marks := []string{
		"load model", "iter 3", "phase fwd", "iter 3 end", "iter 4", "phase fwd", "layer 7 of nine", "layer 8 of nine", "",
		"load model",
		"end of batch 3", "teardown end", "iter 3",
	}
	var text strings.Builder
	for _, m := range marks {
		text.WriteString("mark \"" + m + "\"\n")
	}
	require.Equal(t, []string{
		`mark "mark c"`, `mark "step d 0"`, `mark "mark f"`, `mark "step d 0 end"`, `mark "step d 1"`, `mark "mark f"`,
		`mark "mark g 0."`, `mark "mark g 1."`, `mark ""`, `mark "mark c"`, `mark "end step h 0"`, `mark "mark j end"`,
		`mark "step d 0"`,
	}, anonymous(t, text.String()))
}

func TestAnonymizeReturnsTheErrorOfSettings(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("a 1 5\nconf a\n"), "x.trace", trace.Options{})
	require.NoError(t, err)
	_, err = trace.Anonymize(tr, trace.Header{}, func(string) (string, error) { return "", errors.New("no") })
	require.EqualError(t, err, "x.trace:2: no")
}
