package strictyaml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/strictyaml"
)

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: [1":               "did not find expected ',' or ']'",
		"a: 1\n--- {b: 2}\n":  "line 2, column 5: want one document",
		"a: &x 1\nb: *x\n":    "line 1, column 4: anchors and aliases are not supported",
		"- [[[[1]]]]\n":       "depth",
		"a: 12345678901234\n": "want at most 16 bytes",
	} {
		limits := strictyaml.Limits{Bytes: 64, Depth: 3}
		if strings.Contains(want, "16 bytes") {
			limits.Bytes = 16
		}
		_, err := strictyaml.Read(strings.NewReader(text), limits)
		require.ErrorContains(t, err, want, text)
	}
	n, err := strictyaml.Read(strings.NewReader("# nothing\n"), strictyaml.Limits{Bytes: 64, Depth: 3})
	require.NoError(t, err)
	require.Nil(t, n)
}

func TestPairsRefuseKeysGivenTwice(t *testing.T) {
	n, err := strictyaml.Read(strings.NewReader("a: 1\nb: 2\na: 3\n"), strictyaml.Limits{Bytes: 64, Depth: 3})
	require.NoError(t, err)
	_, err = strictyaml.Pairs(n, errors.New("want a mapping"))
	require.EqualError(t, err, `line 3, column 1: "a" is given twice`)
	_, err = strictyaml.Pairs(n.Content[1], errors.New("want a mapping"))
	require.EqualError(t, err, "line 1, column 4: want a mapping")
}
