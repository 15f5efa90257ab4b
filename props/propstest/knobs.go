package propstest

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/vramyard/vramyard/props"
)

// EveryKnob checks that the subjects use at least two values of every field of their
// configuration: a setting that never varies is not tested.
func EveryKnob(t *testing.T, subjects ...props.Subject) {
	t.Helper()
	for knob, values := range knobValues(t, subjects) {
		if len(values) < 2 {
			t.Errorf("setting %q: the suite runs no value but %s", knob, values[0])
		}
	}
}

// knobValues returns the values, in JSON, that each field of the configurations has.
func knobValues(t *testing.T, subjects []props.Subject) map[string][]string {
	t.Helper()
	values, held := map[string][]string{}, map[string]int{}
	for _, s := range subjects {
		text, err := json.Marshal(s.Config)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		for knob, value := range fields {
			held[knob]++
			if !slices.Contains(values[knob], string(value)) {
				values[knob] = append(values[knob], string(value))
			}
		}
	}
	for knob := range values { // an omitted setting is zero
		if n := held[knob]; n < len(subjects) {
			values[knob] = append(values[knob], "zero")
		}
	}
	return values
}
