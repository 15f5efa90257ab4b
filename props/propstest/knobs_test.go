package propstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props"
)

func TestKnobValuesAreThoseOfTheSubjects(t *testing.T) {
	type config struct {
		Size int    `json:"size"`
		Kind string `json:"kind"`
	}
	got := knobValues(t, []props.Subject{{Config: config{1, "a"}}, {Config: config{2, "a"}}, {Config: config{1, "a"}}})
	require.Equal(t, map[string][]string{"size": {"1", "2"}, "kind": {`"a"`}}, got)
}
