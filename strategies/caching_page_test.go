package strategies_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/caching"
)

// cachingSettings are the rows of the tables of settings: what users export, alone and as they
// combine it. The first heldSettings of them are compared in every run.
var cachingSettings = [...]caching.Config{
	{},
	{Conf: "expandable_segments:True"},
	{Conf: "max_split_size_mb:32"},
	{Conf: "max_split_size_mb:128"},
	{Conf: "max_split_size_mb:512"},
	{Conf: "max_split_size_mb:128,max_non_split_rounding_mb:128"},
	{Conf: "roundup_power2_divisions:4"},
	{Conf: "roundup_power2_divisions:8"},
	{Conf: "roundup_power2_divisions:16"},
	{Conf: "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"},
	{Conf: "roundup_power2_divisions:[64:8,128:4,256:2,>:1]"},
	{Conf: "roundup_power2_divisions:[64:8,128:4,256:2,>:1]", Rules: caching.Rules26},
	{Conf: "large_segment_size_mb:32"},
	{Conf: "large_segment_size_mb:64"},
	{MemoryFraction: 0.95},
	{Conf: "garbage_collection_threshold:0.6", MemoryFraction: 0.95},
	{Conf: "garbage_collection_threshold:0.8", MemoryFraction: 0.95},
	{Conf: "garbage_collection_threshold:0.6,max_split_size_mb:128"},
	{Conf: "garbage_collection_threshold:0.6,max_split_size_mb:128", MemoryFraction: 0.95},
	{Conf: "expandable_segments:True,max_split_size_mb:128"},
	{Conf: "expandable_segments:True,roundup_power2_divisions:8"},
	{Conf: "expandable_segments:True,garbage_collection_threshold:0.8", MemoryFraction: 0.95},
	{Conf: "expandable_segments:True,large_segment_size_mb:64"},
	{Mended: true},
}

// heldSettings is how many rows every run compares, at a second of one core each.
const heldSettings = 3

// The tables of the page of caching, each between marks of its own.
var (
	smallestTable = regexp.MustCompile(`(?s)(<!-- smallest: begin -->\n)(.*)(<!-- smallest: end -->)`)
	heldTable     = regexp.MustCompile(`(?s)(<!-- held: begin -->\n)(.*)(<!-- held: end -->)`)
)

// cachingPage is the page with the tables of settings.
var cachingPage = filepath.Join("..", "docs", "strategies", "caching.md")

// TestCachingSettings holds the two tables of settings of caching's page to what the strategy
// does on the recorded traces: the first rows, or with -pages.all every row.
//
//	go test ./strategies -run TestCachingSettings -rewrite
func TestCachingSettings(t *testing.T) {
	if testing.Short() {
		t.Skip("replays settings some hundred times")
	}
	var traces []*trace.Trace
	for _, tr := range workload.EachRecording {
		traces = append(traces, tr)
	}
	settings := cachingSettings[:]
	if !*allPages && !*rewrite {
		settings = settings[:heldSettings]
	}
	smallest, held := settingsTables(t, traces, settings)
	page, err := os.ReadFile(cachingPage)
	require.NoError(t, err)
	for _, part := range []struct {
		marks *regexp.Regexp
		text  string
	}{{smallestTable, smallest}, {heldTable, held}} {
		found := part.marks.FindSubmatch(page)
		require.NotNil(t, found, "%s lacks %s", cachingPage, part.marks)
		if *rewrite {
			page = part.marks.ReplaceAll(page, []byte("${1}"+part.text+"${3}"))
			continue
		}
		require.Equal(t, len(cachingSettings)+2, strings.Count(string(found[2]), "\n"), "a row for each setting")
		for line := range strings.Lines(part.text) {
			require.Contains(t, string(found[2]), line, "go test ./strategies -run TestCachingSettings -rewrite")
		}
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(cachingPage, page, 0o644))
	}
}

// onCard is the device of the tables: one that charges whole pages and takes the time of an A100.
var onCard = sim.Config{Charge: 2 * device.MiB}

// settingsTables returns the table of the smallest cards and that of what is held on an ample one.
func settingsTables(t *testing.T, traces []*trace.Trace, settings []caching.Config) (smallest, held string) {
	var setups []setting.Setup
	for _, c := range settings {
		config, err := json.Marshal(c)
		require.NoError(t, err)
		s, err := strategies.All().Lookup("caching", config)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	r, err := compare.Compare(t.Context(), traces, setups, compare.Options{Device: replay.SimTarget(onCard)})
	require.NoError(t, err)
	head := "| setting |"
	for _, tr := range traces {
		head += " " + strings.ReplaceAll(tr.Header.Name, "_", " ") + " |"
	}
	columns := strings.Repeat("--:|", len(traces)+3) + "\n"
	smallest = head + " mean | OOMs, retries at 1.25 × | device time at 1.25 × |\n|---|" + columns
	held = head + " mean | device calls | device time |\n|---|" + columns
	for i, c := range settings {
		low, high := nameOf(c), nameOf(c)
		product, calls, time := 1.0, uint64(0), uint64(0)
		for j := range traces {
			run := r.Runs[j*len(setups)+i]
			reserved := float64(run.PeakReserved) / float64(run.LowerBound)
			product *= reserved
			calls, time = calls+run.DeviceCalls, time+run.DeviceTime
			low += " " + times3(factor(run)) + " |"
			high += " " + times3(reserved) + " |"
		}
		smallest += low + " " + times3(mean(r, i, len(setups))) + " | " + tight(t, traces, setups[i]) + "\n"
		held += fmt.Sprintf("%s %s | %d | %s |\n", high,
			times3(math.Pow(product, 1/float64(len(traces)))), calls, milliseconds(time))
	}
	return smallest, held
}

// nameOf returns the first cell of the row of a setting.
func nameOf(c caching.Config) string {
	var parts []string
	if c.Conf != "" {
		parts = append(parts, "`"+c.Conf+"`")
	}
	if c.MemoryFraction != 0 {
		parts = append(parts, "fraction "+strconv.FormatFloat(c.MemoryFraction, 'g', -1, 64))
	}
	if c.Rules != "" {
		parts = append(parts, "rules "+c.Rules)
	}
	if c.Mended {
		parts = append(parts, "`mended`")
	}
	if parts == nil {
		parts = append(parts, "none")
	}
	return "| " + strings.Join(parts, ", ") + " |"
}

// tight returns what all traces together cost on cards with a quarter more than is live at most:
// requests that find no memory, requests that get it with the last attempt, and the time of the
// device.
func tight(t *testing.T, traces []*trace.Trace, setup setting.Setup) string {
	var ooms, time uint64
	var retries int64
	for _, tr := range traces {
		on := onCard
		on.Capacity = device.AlignUp(tr.LowerBound()*5/4, on.Charge)
		dev, err := sim.New(on)
		require.NoError(t, err)
		res, err := replay.Run(tr, setup, dev, replay.Options{Figures: true})
		require.NoError(t, err)
		again, ok := res.Counters.Get("num_alloc_retries")
		require.True(t, ok)
		ooms, time, retries = ooms+res.OOMs, time+res.DeviceTime, retries+again
	}
	return fmt.Sprintf("%d, %d | %s |", ooms, retries, milliseconds(time))
}

// milliseconds returns a time as a table shows it.
func milliseconds(ns uint64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }
