package strategies_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// The strategies of docs/recall-study.md. A suffix names the requests that a strategy learned from.
const (
	studySubject  = "recall"
	studyPaged    = "recall:pages"
	studyFallback = "bestfit"     // of the subject
	studyBound    = "lower bound" // the column of the least capacities that are possible
	prefixSuffix  = " --learn steps 1-3"
)

var (
	// studySubjects take part in all tables, studyChanged in the tables of perturbed and spliced
	// traces, and studyOthers on unchanged traces.
	studySubjects = []string{studySubject, studyPaged, studyFallback}
	studyChanged  = []string{
		"caching:expandable", "stitch", "compiler", "stalloc" + learnedSuffix, "stalloc:unchecked" + learnedSuffix,
		"pgmo" + learnedSuffix,
	}
	studyOthers = []string{
		"recall:graph", "stalloc" + prefixSuffix, "pgmo" + prefixSuffix, "compiler:fine", "caching", "rmm:pool",
		"rmm:arena", "rmm:binning", "direct",
	}
	studyGroups = []studyGroup{groupPlain, groupPerturbed, groupSpliced, groupRandom}
)

const (
	sampleEvents = 15_000 // most events of an unchanged trace whose cells are compared without -pages.all
	sampleStride = 5      // distance of the cases that are compared
	timedRounds  = 3      // times are minima
)

var studyFiles = flag.String("study.traces", "", "print the tables of the study for these files, separated by commas")

var (
	studyPage    = filepath.Join("..", "docs", "recall-study.md")
	studyResults = filepath.Join("testdata", "study.csv")
	studySpot    = regexp.MustCompile(`(?s)(<!-- ([a-z]+): begin -->\n)(.*?)(<!-- [a-z]+: end -->)`)
)

// studyDevice charges whole pages, as cards do.
var studyDevice = sim.Config{Charge: 2 * device.MiB}

// TestRecallStudy compares docs/recall-study.md with testdata/study.csv, and a sample of the file
// with the strategies, or with -pages.all every cell. A subtest is a strategy, a group and a trace:
//
//	go test ./strategies -run 'TestRecallStudy/^recall' -rewrite -timeout 2h
//	go test ./strategies -run 'TestRecallStudy/./unchanged' -study.traces a.csv.gz,b.csv.gz
func TestRecallStudy(t *testing.T) {
	s := newStudy(t)
	for _, name := range s.names {
		t.Run(name, func(t *testing.T) {
			for _, g := range studyGroups {
				t.Run(string(g), func(t *testing.T) { s.run(t, name, g) })
				s.write(t) // an interrupted run keeps its results
			}
		})
	}
	t.Run("time", s.time)
	s.write(t)
	if *studyFiles != "" {
		for _, spot := range []string{"bars", "capacity", "rivals", "calls", "perturbed", "spliced", "time"} {
			fmt.Println(s.text(spot))
		}
		return
	}
	page, err := os.ReadFile(studyPage)
	require.NoError(t, err)
	want := studySpot.ReplaceAllFunc(page, func(spot []byte) []byte {
		parts := studySpot.FindSubmatch(spot)
		return slices.Concat(parts[1], []byte(s.text(string(parts[2]))), parts[4])
	})
	if *rewrite {
		require.NoError(t, os.WriteFile(studyPage, want, 0o644))
		return
	}
	require.Equal(t, string(want), string(page), "go test ./strategies -run 'TestRecallStudy/^none' -rewrite")
}

// studyResult is a cell of the file. A cell has its numbers without the zeros at the end.
type studyResult struct {
	smallest uint64 // minimum capacity in bytes, 0 for none
	late     uint64 // device calls from the third step, on an ample device
	overlaps uint64 // blocks that share bytes with a live one
	percent  uint64 // time in percent of the fallback's, 0 if not measured
	// On spliced traces: per mille of the blocks at planned places in the step before the deviation
	// and in two after it, and events from its end to the first planned place, from 1; 0 for never.
	planned [3]uint64
	back    uint64
}

func (r *studyResult) fields() []*uint64 {
	return []*uint64{&r.smallest, &r.late, &r.overlaps, &r.percent, &r.planned[0], &r.planned[1], &r.planned[2], &r.back}
}

// study has the results of a run.
type study struct {
	names   []string // strategies
	cases   []studyCase
	lock    sync.Mutex
	results map[resultKey]studyResult
}

func newStudy(t *testing.T) *study {
	t.Helper()
	s := &study{names: slices.Concat(studySubjects, studyChanged, studyOthers), results: map[resultKey]studyResult{}}
	var files []string
	if *studyFiles != "" {
		files = strings.Split(*studyFiles, ",")
	} else {
		s.read(t)
		s.cases = randomCases()
	}
	s.cases = append(studyCases(t, plainTraces(t, files)), s.cases...)
	return s
}

// read reads the file, which has a line for each trace. A missing file is empty.
func (s *study) read(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(studyResults)
	if err != nil && *rewrite {
		return
	}
	require.NoError(t, err)
	lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	require.NoError(t, err)
	for _, line := range lines[1:] {
		for i, cell := range line[1:] {
			var r studyResult
			for j, number := range strings.Fields(cell) {
				*r.fields()[j], err = strconv.ParseUint(number, 10, 64)
				require.NoError(t, err)
			}
			if cell != "" {
				s.results[resultKey{lines[0][i+1], line[0]}] = r
			}
		}
	}
}

// write writes the file with -rewrite.
func (s *study) write(t *testing.T) {
	t.Helper()
	if !*rewrite || *studyFiles != "" {
		return
	}
	columns := append([]string{studyBound}, s.names...)
	lines := [][]string{append([]string{"trace"}, columns...)}
	for _, c := range s.cases {
		line := []string{c.name}
		for _, name := range columns {
			var cell []string
			if r, ok := s.results[resultKey{name, c.name}]; ok {
				for _, n := range r.fields() {
					cell = append(cell, strconv.FormatUint(*n, 10))
				}
				for len(cell) > 1 && cell[len(cell)-1] == "0" {
					cell = cell[:len(cell)-1]
				}
			}
			line = append(line, strings.Join(cell, " "))
		}
		lines = append(lines, line)
	}
	var b bytes.Buffer
	require.NoError(t, csv.NewWriter(&b).WriteAll(lines))
	require.NoError(t, os.WriteFile(studyResults, b.Bytes(), 0o644))
}

// takesPart reports whether the study has a result for a strategy and a trace.
func takesPart(name string, c studyCase) bool {
	switch {
	case slices.Contains(studySubjects, name):
		return true
	case c.group == groupPlain:
		return !strings.HasSuffix(name, prefixSuffix) || c.steps.Count >= barSteps
	}
	return c.group != groupRandom && slices.Contains(studyChanged, name)
}

// run writes or compares the results of a strategy on a group of traces.
func (s *study) run(t *testing.T, name string, g studyGroup) {
	for i, c := range s.in(g) {
		if !takesPart(name, c) {
			continue
		}
		_, found := s.results[resultKey{name, c.name}]
		writes := *rewrite || *studyFiles != ""
		require.True(t, found || writes, "%s has no cell for %s on %s", studyResults, name, c.name)
		sample := !testing.Short() && (c.plain == nil || len(c.plain.Events) < sampleEvents) && i%sampleStride == 0
		if !writes && !*allPages && !sample {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr, err := c.build()
			require.NoError(t, err)
			if writes {
				s.measure(t, name, c, tr)
			} else {
				s.hold(t, name, c, tr)
			}
		})
	}
}

// measure searches the result of a strategy on a trace.
func (s *study) measure(t *testing.T, name string, c studyCase, tr *trace.Trace) {
	setup := studySetup(t, name, c)
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	options := compare.Options{Device: replay.SimTarget(studyDevice), Quick: c.group != groupPlain, Once: true}
	run, err := compare.NewTrial(compare.NewPool(1, 0), p, setup, options).Run(t.Context())
	require.NoError(t, err)
	r := watch(t, setup, c, tr)
	r.smallest = uint64(valueOf(run.MinCapacity))
	s.lock.Lock()
	defer s.lock.Unlock()
	r.percent = s.results[resultKey{name, c.name}].percent
	s.results[resultKey{name, c.name}] = r
	s.results[resultKey{studyBound, c.name}] = studyResult{smallest: uint64(tr.LowerBound())}
}

// hold compares a result with the strategy. A search found the minimum capacity, so it completes,
// and one step below fails.
func (s *study) hold(t *testing.T, name string, c studyCase, tr *trace.Trace) {
	setup, want, bound := studySetup(t, name, c), s.results[resultKey{name, c.name}], tr.LowerBound()
	require.Equal(t, s.results[resultKey{studyBound, c.name}].smallest, uint64(bound), "lower bound")
	got := watch(t, setup, c, tr)
	got.smallest, got.percent = want.smallest, want.percent
	require.Equal(t, want, got)
	if want.smallest == 0 {
		return
	}
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	smallest := device.Size(want.smallest)
	trial := compare.NewTrial(compare.NewPool(1, 0), p, setup, compare.Options{Device: replay.SimTarget(studyDevice)})
	require.True(t, completes(t, trial, smallest), "%v does not complete", smallest)
	if below := smallest - compare.Grid; below >= bound {
		require.False(t, completes(t, trial, below), "%v completes too", below)
	}
}

// studySetup returns a strategy, with a forecast from the unchanged trace or from its first steps.
func studySetup(t *testing.T, name string, c studyCase) setting.Setup {
	t.Helper()
	preset, _, learns := strings.Cut(name, learnedSuffix)
	setup, err := strategies.All().Lookup(preset, nil)
	require.NoError(t, err)
	if learns {
		profile := c.plain
		if strings.HasSuffix(name, prefixSuffix) {
			steps, err := trace.Steps(profile)
			require.NoError(t, err)
			profile, err = trace.Cut(profile, trace.Span{End: steps[2].End}, 0)
			require.NoError(t, err)
		}
		setups, _, err := compare.Learn(profile, []setting.Setup{setup})
		require.NoError(t, err)
		setup = setups[0]
	}
	setup.Name = name
	return setup
}

// time measures the subjects on the recordings and a perturbation of each. Times differ from run to
// run, so they are written but not compared.
func (s *study) time(t *testing.T) {
	if !*rewrite && *studyFiles == "" {
		t.Skip("needs -rewrite or -study.traces: times depend on the machine")
	}
	var names []string
	var traces []*trace.Trace
	for _, c := range s.cases {
		if c.timed() {
			tr, err := c.build()
			require.NoError(t, err)
			names, traces = append(names, c.name), append(traces, tr)
		}
	}
	var setups []setting.Setup
	for _, name := range studySubjects {
		setups = append(setups, studySetup(t, name, studyCase{}))
	}
	ns, err := compare.Time(t.Context(), traces, setups, studyDevice, timedRounds)
	require.NoError(t, err)
	fallback := slices.Index(studySubjects, studyFallback)
	for i, name := range studySubjects {
		for j, trace := range names {
			k := resultKey{name, trace}
			r := s.results[k]
			r.percent = uint64(100 * ns[i][j] / ns[fallback][j])
			s.results[k] = r
		}
	}
}
