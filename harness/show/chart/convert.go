package chart

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/tune"
)

// fieldPoint is the number of a setting in a search; 0 is the initial preset.
const fieldPoint = "point"

// listed returns a result that lists its runs, in the form package diff reads.
func listed[R any](runs []R) ([]byte, error) {
	return json.Marshal(struct {
		Schema string `json:"schema"`
		Runs   []R    `json:"runs"`
	}{compare.Schema, runs})
}

// runsOfTune lists the settings tried by a search, for each trace.
func runsOfTune(text []byte) ([]byte, error) {
	var r tune.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	type run struct {
		compare.Run
		Point int `json:"point"`
	}
	runs := []run{}
	for i, p := range append([]tune.Point{r.Preset}, r.Searched...) {
		for _, on := range p.Runs {
			on.Strategy = r.Strategy
			runs = append(runs, run{on, i})
		}
	}
	return listed(runs)
}

var errNoTrace = errors.New(`"traces": want objects`)

// runsOfOffline lists the placements of each trace. The height of a placement is its minimum
// capacity.
func runsOfOffline(text []byte) ([]byte, error) {
	var r offline.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	type run struct {
		Trace       string      `json:"trace"`
		Hash        string      `json:"trace_sha256"`
		Strategy    string      `json:"strategy"`
		LowerBound  device.Size `json:"lower_bound_bytes"`
		MinCapacity device.Size `json:"min_capacity_bytes"`
	}
	runs := []run{}
	for _, t := range r.Traces {
		if t == nil {
			return nil, errNoTrace
		}
		add := func(name string, height device.Size) {
			runs = append(runs, run{t.Trace, t.Hash, "offline: " + name, t.LowerBound, height})
		}
		for _, p := range t.Greedy {
			add(strings.TrimPrefix(p.Method, "greedy "), p.Height)
		}
		// The best method may differ between traces; one name gives them a common row.
		add("best", t.Best.Height)
	}
	return listed(runs)
}
