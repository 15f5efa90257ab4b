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
	Command string // command that writes it
	Schema  string // schema in its JSON
	CSV     bool   // its CSV table can be drawn too
	column  string // identifying column of the table
}

// The commands whose results can be drawn.
const (
	cmdReplay  = "replay"
	cmdCompare = "compare"
	cmdWhatif  = "whatif"
	cmdTune    = "tune"
	cmdOffline = "offline"
	cmdBench   = "bench"
	cmdRemat   = "remat"
)

// Results returns every form with a schema, drawable ones first.
func Results() []Result {
	return []Result{
		{cmdReplay, replay.Schema, false, "alloc_count"},
		{cmdCompare, compare.Schema, true, "trace"},
		{cmdWhatif, "vramyard-whatif/1", true, "label"},
		{cmdTune, tune.Schema, false, "point"},
		{cmdOffline, offline.Schema, false, ""},
		{cmdBench, bench.Schema, true, "workload"},
		{cmdRemat, grid.Schema, true, "ladder"},
		{"verify", verify.Schema, false, ""},
		{"diff", diff.Schema, false, ""},
		{"replay --explain", "vramyard-postmortem/1", false, ""},
	}
}

// Kinds returns the kinds that can draw the result, the default first.
func (r Result) Kinds() (kinds []Kind) {
	for _, k := range Kinds() {
		if slices.Contains(k.Commands, r.Command) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Drawn returns the commands whose JSON and whose CSV can be drawn, as text.
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

// taken describes the results that each kind takes.
func taken() string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, k.Name+" takes "+either(k.Commands))
	}
	return strings.Join(all, ", ")
}

// either joins names with commas and a final "or".
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
