package chart

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/harness/study/verify"
)

// Result is a form of results.
type Result struct {
	Command string // that writes it as JSON
	Schema  string // names the form
	CSV     bool   // there are figures of its table in CSV too
	column  string // of the table, which those above in the list lack
}

// The commands whose results are drawn.
const (
	ofReplay  = "replay"
	ofCompare = "compare"
	ofWhatif  = "whatif"
	ofTune    = "tune"
	ofOffline = "offline"
	ofBench   = "bench"
	ofRemat   = "remat"
)

// Results returns every form of results that names its schema, those first of which there is a
// figure.
func Results() []Result {
	return []Result{
		{ofReplay, replay.Schema, false, "alloc_count"},
		{ofCompare, compare.Schema, true, "trace"},
		{ofWhatif, "vramyard-whatif/1", true, "label"},
		{ofTune, tune.Schema, false, "point"},
		{ofOffline, offline.Schema, false, ""},
		{ofBench, bench.Schema, true, "workload"},
		{ofRemat, grid.Schema, true, "ladder"},
		{"verify", verify.Schema, false, ""},
		{"diff", diff.Schema, false, ""},
		{"replay --explain", "vramyard-postmortem/1", false, ""},
	}
}

// Kinds returns the kinds that the result can be drawn as, the first of them its own.
func (r Result) Kinds() (kinds []Kind) {
	for _, k := range Kinds() {
		if slices.Contains(k.Of, r.Command) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Drawn returns, in words, the commands that write JSON and those that write CSV of which there is
// a figure.
func Drawn() (asJSON, asCSV string) {
	var json, csv []string
	for _, r := range Results() {
		if len(r.Kinds()) == 0 {
			continue
		}
		json = append(json, r.Command)
		if r.CSV {
			csv = append(csv, r.Command)
		}
	}
	return either(json), either(csv)
}

// taken returns, in words, which results each kind takes.
func taken() string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, k.Name+" is of "+either(k.Of))
	}
	return strings.Join(all, ", ")
}

// either joins names by commas, the last by "or".
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
