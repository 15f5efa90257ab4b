package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/examples/internal/requests"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

// TestFilesAreWhatTheProgramsMake makes every file anew and compares the hashes of their contents.
func TestFilesAreWhatTheProgramsMake(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{dir}))
	for _, n := range incidents {
		made := open(t, filepath.Join(dir, n.name+".trace.gz"))
		require.Equal(t, made.Header.Hash, open(t, n.name+".trace.gz").Header.Hash,
			"%s is not what it would be made as: go run ./examples/incidents examples/incidents", n.name)
	}
	require.ErrorContains(t, run(nil), "want one directory")
}

func open(t *testing.T, path string) *trace.Trace {
	t.Helper()
	tr, err := formats.Open(path, formats.Options{})
	require.NoError(t, err)
	return tr
}

// TestThePageListsEveryIncident compares the table with names, reports and cards.
func TestThePageListsEveryIncident(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Len(t, incidents, 20)
	for _, n := range incidents {
		require.Contains(t, string(page), "| `"+n.name+"` | [")
		require.Contains(t, string(page), "](https://github.com/"+n.link+") | "+units.Bytes(n.card)+" | ", n.name)
	}
}

// setup is a strategy with a configuration.
type setup struct{ strategy, config string }

// conf returns PyTorch's allocator with settings.
func conf(text string) setup { return setup{"caching", `{"conf":"` + text + `"}`} }

// outcomes has what the reports say: the allocator that failed, and one that did not. A report
// without the latter names no setting that helped.
var outcomes = map[string]struct{ fails, completes setup }{
	"convert-weights":   {conf(""), conf("max_split_size_mb:20@load..serve")},
	"prefill-long":      {conf(""), conf("expandable_segments:True")},
	"capture-ascending": {fails: conf("")},
	"expand-tokens":     {fails: conf("")},
	"reload-optimizer":  {conf(""), conf("expandable_segments:True")},
	"keep-routing":      {conf(""), conf("expandable_segments:True")},
	"leave-residue":     {fails: conf("")},
	"beside-nccl":       {conf(""), conf("per_process_memory_fraction:0.9")},
	"copy-masters":      {conf(""), conf("expandable_segments:True")},
	"second-step":       {fails: conf("")},
	"keep-one":          {conf("max_split_size_mb:128,expandable_segments:True"), conf("expandable_segments:True")},
	"wait-for-stream":   {fails: conf("")},
	"grow-pool":         {fails: conf("")},
	"evaluate-between": {
		setup{"caching", `{"rules":"2.6"}`}, setup{"caching", `{"rules":"2.6","conf":"max_split_size_mb:256"}`},
	},
	"vary-lengths":         {conf(""), conf("expandable_segments:True")},
	"balance-loss":         {fails: conf("")},
	"overlap-microbatches": {setup{"async:keep", ""}, conf("")},
	"read-lines":           {setup{"bfc", ""}, setup{"async:keep", ""}},
	"resume-run":           {setup{"bfc", `{"memory_fraction":0.9}`}, setup{"async:keep", ""}},
	"grow-batch":           {setup{"bfc", `{"memory_fraction":0.75}`}, setup{"bfc", `{"memory_fraction":0.88}`}},
}

// TestIncidentsFailAsReported replays every trace on its card with the allocator of the report, and
// with what helped there. The live bytes fit, unless nothing can help.
func TestIncidentsFailAsReported(t *testing.T) {
	require.Len(t, outcomes, len(incidents))
	for _, n := range incidents {
		t.Run(n.name, func(t *testing.T) {
			tr := open(t, n.name+".trace.gz")
			o, ok := outcomes[n.name]
			require.True(t, ok)
			require.False(t, completes(t, tr, n.card, o.fails))
			if o.completes.strategy != "" {
				require.True(t, completes(t, tr, n.card, o.completes))
			}
			prepared, err := replay.Prepare(t.Context(), tr)
			require.NoError(t, err)
			impossible := n.name == "leave-residue" || n.name == "balance-loss"
			require.Equal(t, impossible, prepared.LowerBound() > n.card, "the live bytes fit")
		})
	}
}

func completes(t *testing.T, tr trace.Source, card device.Size, s setup) bool {
	t.Helper()
	var config json.RawMessage
	if s.config != "" {
		config = json.RawMessage(s.config)
	}
	found, err := strategies.All().Lookup(s.strategy, config)
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: card})
	require.NoError(t, err)
	res, err := replay.Run(tr, found.ForCapacity(card), dev, replay.Options{StopAtOOM: true})
	require.NoError(t, err)
	return res.OOMs == 0 && res.Refused == 0
}

// TestOtherProgramsComplete replays what helped in two reports: another order of captures, and the
// default pool.
func TestOtherProgramsComplete(t *testing.T) {
	for name, program := range map[string]func(*requests.Maker){
		"capture-ascending": func(m *requests.Maker) { capture(m, descending(batches())) },
		"grow-pool":         grow,
	} {
		m := requests.New(trace.Header{Name: name})
		program(m)
		tr, err := m.Trace()
		require.NoError(t, err)
		require.True(t, completes(t, tr, named(t, name).card, conf("")), name)
	}
}

func descending(sizes []device.Size) []device.Size {
	slices.Reverse(sizes)
	return sizes
}

func named(t *testing.T, name string) *incident {
	t.Helper()
	for i := range incidents {
		if incidents[i].name == name {
			return &incidents[i]
		}
	}
	t.Fatalf("no incident %s", name)
	return nil
}
