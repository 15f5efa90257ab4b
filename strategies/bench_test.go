package strategies_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies"
)

// BenchmarkSteady times a pair of Free and Alloc in every strategy with 1e3 to 1e6 live
// blocks, and shows the memory beside the time:
//
//	go test ./strategies -run '^$' -bench Steady -count 10
func BenchmarkSteady(b *testing.B) {
	// BFC without growth writes nothing in proportion to its limit, so one that holds the
	// largest case serves them all.
	config := map[string]string{"bfc": `{"limit":"64GiB"}`, "bfc:growth": `{"limit":"64GiB"}`}
	var subjects []props.Subject
	for _, name := range strategies.Compared() {
		s, err := strategies.All().Lookup(name, json.RawMessage(config[name]))
		require.NoError(b, err)
		subjects = append(subjects, props.Subject{Name: name, New: s.New})
	}
	propstest.Bench(b, subjects...)
}
