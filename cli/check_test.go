package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
)

func TestCheckWrongInput(t *testing.T) {
	file := write(t, "file", "")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"--test", "1"}, "unknown flag: --test"},
		{"no number", []string{"--tests", "many"}, `invalid argument "many" for "--tests" flag: want a whole number`},
		{"argument", []string{"bfc"}, `1 argument: want "vramyard check [flags]"`},
		{"unknown strategy", []string{"--strategies", "bcf"},
			`unknown strategy "bcf": did you mean "bfc"? want one of bfc, `},
		{"unknown preset", []string{"--strategies", "bfc:fast"}, `unknown preset "fast" of bfc`},
		{"no strategies", []string{"--strategies", " ,"}, "--strategies: want at least one"},
		{"no tests", []string{"--tests", "0"}, "--tests: want 1 to "},
		{"fewer than no tests", []string{"--tests", "-5"}, "--tests: want 1 to "},
		{"too many tests", []string{"--tests", "2000000000"}, "--tests: want 1 to "},
		{"no ops", []string{"--ops", "0"}, "--ops: want 1 to "},
		{"too many ops", []string{"--ops", "100001"}, "--ops: want 1 to "},
		{"config of many", []string{"--config", "{}"}, "strategies are named: want one"},
		{"config of two", []string{"--strategies", "bfc,bfc:gc", "--config", "{}"}, "--config: 2 strategies are named"},
		{"bad JSON", []string{"--strategies", "bfc", "--config", "{"}, "character 2: the JSON object does not end"},
		{"unknown field", []string{"--strategies", "bfc", "--config", `{"limt":1}`}, `unknown field "limt"`},
		{"bad value", []string{"--strategies", "bfc", "--config", `{"variant":"1999"}`}, "1999"},
		{"missing folder", []string{"--out", filepath.Join(file, "x")}, "--out: "},
		{"no folder", []string{"--out", file}, "not a folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, append([]string{"check"}, c.args...)...)
			require.Equal(t, exitTrouble, status, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		})
	}
}

// TestCheckNeedsNoFolderToWriteTo runs where nothing can be written, which only --out is judged
// for.
func TestCheckNeedsNoFolderToWriteTo(t *testing.T) {
	locked := "/proc/self"
	if _, err := os.Stat(locked); err != nil {
		t.Skip("needs a folder that this user cannot write to, such as /proc")
	}
	t.Chdir(locked)
	succeed(t, "check", "--strategies", "bfc", "--tests", "1")
	status, stdout, stderr := command(t, "check", "--strategies", "bfc", "--tests", "1", "--out", locked)
	require.Equal(t, exitTrouble, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "vramyard: --out: write /proc/self/failure.trace: ")
}

// TestCheckOfHealthyStrategies prints the table and one line, and writes nothing.
func TestCheckOfHealthyStrategies(t *testing.T) {
	dir := t.TempDir()
	args := []string{"check", "--strategies", "bfc, buddy:xdl,slab:blaze,bfc", "--tests", "60", "--ops", "40",
		"--out", dir}
	out := succeed(t, args...)
	for _, name := range []string{"bfc@12MiB", "bfc@24MiB", "buddy:xdl@8GiB", "slab:blaze@8GiB", "verdict", "held"} {
		require.Contains(t, out, name)
	}
	require.True(t, strings.HasSuffix(out, "\n4 subjects, 240 sequences: every invariant held\n"), out)
	require.Equal(t, out, succeed(t, args...), "the same every time")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestCheckWithFaultsAndConfig(t *testing.T) {
	out := succeed(t, "check", "--strategies", "buddy:xdl", "--config", `{"region_bytes":65536}`, "--tests", "80",
		"--faults", "--seed", "7")
	require.Contains(t, out, "buddy:xdl@512KiB")
	require.Contains(t, out, "1 subjects, 82 sequences: every invariant held")
}

func TestCheckNamesExceptions(t *testing.T) {
	r := check.Report{Subjects: []check.SubjectReport{{
		Subject: props.Subject{Name: "odd"},
		Result:  props.Result{Sequences: 1, Excepted: map[props.Number]int{props.ILimit: 2, props.IRegions: 1}},
	}}}
	sheet := checkSheet(r)
	require.Contains(t, sheet.Terminal(io.Discard), "held, but for I2, I20")
}

// shifty is a strategy that hides small free chunks from its walk while two blocks are live.
type shifty struct{ wrap.Forwarder }

// Walk implements [alloc.Inspector].
func (s *shifty) Walk(yield func(alloc.Chunk) bool) {
	two := s.Stats().Live == 2
	s.Forwarder.Walk(func(c alloc.Chunk) bool { return two && c.State == alloc.Free && c.Size < 1024 || yield(c) })
}

// shiftySuspect is a healthy strategy of the catalogue, gone wrong.
func shiftySuspect(t *testing.T) candidate {
	t.Helper()
	const name, config = "buddy:xdl", `{"region_bytes":4096, "block_bytes":256}`
	setup, err := everything.Lookup(name, []byte(config))
	require.NoError(t, err)
	subjects, err := check.Subjects(setup, sim.Config{})
	require.NoError(t, err)
	wrapped := subjects[0].Wrapped("shifty", func(a alloc.Strategy) (alloc.Strategy, error) {
		return &shifty{wrap.Forward(a, nil)}, nil
	})
	return candidate{wrapped, strategyArg{name, config}}
}

// TestCheckReportsAFailure goes from a planted bug to what the user sees, and to the trace that
// a replay refuses for the same reason.
func TestCheckReportsAFailure(t *testing.T) {
	s := shiftySuspect(t)
	r, err := check.Run(t.Context(), []props.Subject{s.Subject}, check.Options{Sequences: 100, Seed: 1, Tries: 200})
	require.NoError(t, err)
	require.Len(t, r.Failures(), 1)
	dir := filepath.Join(t.TempDir(), "a folder")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var out strings.Builder
	f := &checkFlags{out: dir, ops: 100,
		files: outputs{[]*output{{flag: "html", path: filepath.Join(dir, "broken.html")}}}}
	cmd := newCheck(everything)
	cmd.SetOut(&out)
	err = f.write(cmd, []candidate{s}, r)
	require.EqualError(t, err, "1 of 1 subjects broke an invariant, first buddy:xdl@32KiB/shifty: I1 (tiling)")

	shown, err := os.ReadFile(f.files.of("html").path)
	require.NoError(t, err)
	require.Contains(t, string(shown), "An invariant is broken")
	require.Contains(t, string(shown), "buddy:xdl@32KiB/shifty, step by step")
	require.NotContains(t, string(shown), dir, "a page is for others, who have other folders")
	tellsSteps(t, string(shown), r.Failures()[0])
	path := filepath.Join(dir, "buddy-xdl-32KiB-shifty-I1.trace")
	for _, want := range []string{
		"broke I1 (tiling)", "\nbuddy:xdl@32KiB/shifty: seed ", "invariant I1 (tiling): ", "build the strategy", "\n>  2  a ",
		"\ntrace: " + path + "\n", "replay --check --strategy buddy:xdl '" + path + "'\n",
		`check --strategies buddy:xdl --config '{"region_bytes":4096, "block_bytes":256}' --tests 1 --ops 100 --seed `,
	} {
		require.Contains(t, out.String(), want)
	}

	counterexample, err := trace.Open(path, trace.Options{})
	require.NoError(t, err)
	build := func(src device.Source, _ struct{}) (alloc.Strategy, error) { return s.New(src) }
	setup, err := setting.Catalogue{setting.SpecOf("shifty", "", build, setting.Preset{})}.Lookup("shifty", nil)
	require.NoError(t, err)
	err = judged(t, counterexample, setup, s.Device)
	require.ErrorContains(t, err, "shifty on I1: event 1: I1 (tiling): ")

	// The strategy of the catalogue has no such bug, and takes its settings from the header.
	require.Contains(t, succeed(t, "replay", "--check", "--strategy", "buddy:xdl", path),
		"every invariant held after each of ")
	status, _, stderr := command(t, "replay", "--check", "--strategy", "slab:xdl", path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "I1: header: configuration of slab:xdl: ")
}

// tellsSteps holds what the script of a page reads to the failure.
func tellsSteps(t *testing.T, page string, f *props.Failure) {
	t.Helper()
	var data struct{ Check []brokenData }
	require.NoError(t, json.Unmarshal([]byte(pageData(t, page)), &data))
	require.Len(t, data.Check, 1)
	b := data.Check[0]
	require.Equal(t, f.Violation.Number.String(), b.Number)
	require.Equal(t, f.Violation.Detail, b.Detail)
	require.Equal(t, f.Seed, b.Seed)
	require.Len(t, f.Sequence, b.Shrunk)
	require.Zero(t, b.LeftOut)
	require.Equal(t, "build the strategy", b.Steps[0].Call)
	last := b.Steps[len(b.Steps)-1]
	require.NotEmpty(t, last.Chunks)
	var shown, held device.Size
	for _, c := range last.Chunks {
		shown += device.Size(c[2] * (1 + c[7]))
	}
	for _, r := range last.Regions {
		held += r.Size
	}
	require.Less(t, shown, held, "the step that broke the tiling shows the gap")
}

// TestCheckPageIsBounded keeps the last of many steps, and the first of many chunks.
func TestCheckPageIsBounded(t *testing.T) {
	story := &check.Story{Violation: &props.Violation{Number: props.ITiling, Detail: "at 0x7f0000000100"}}
	for i := range mostSteps + 5 {
		rows := make([]check.Row, mostChunks+3)
		for k := range rows {
			rows[k] = check.Row{Chunk: alloc.Chunk{Region: 4096, Addr: device.Addr(4096 + 512*k), Size: 256}, More: 1}
		}
		story.Steps = append(story.Steps, check.Step{Call: strconv.Itoa(i), Rows: rows, Cut: true})
	}
	d := (&brokenInvariant{Failure: &props.Failure{Violation: story.Violation}, story: story}).data()
	require.Equal(t, []uint64{0x7f0000000100}, d.Addresses)
	require.Equal(t, 5, d.LeftOut)
	require.Len(t, d.Steps, mostSteps)
	require.Equal(t, "5", d.Steps[0].Call)
	require.Len(t, d.Steps[0].Chunks, mostChunks)
	require.Equal(t, 2*3+1, d.Steps[0].LeftOut)
	require.Equal(t, []stepRegion{{4096, mostChunks * 512}}, d.Steps[0].Regions)
}

// TestCheckReplayOutsideEvents judges what happens before the first event and after the last.
func TestCheckReplayOutsideEvents(t *testing.T) {
	s := shiftySuspect(t)
	empty := &trace.Trace{Header: trace.Header{Name: "empty"}, Tags: []string{""}}
	for _, c := range []struct {
		name  string
		build func(device.Source, struct{}) (alloc.Strategy, error)
		want  string
	}{
		{"leak", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
			if _, err := src.Reserve(4096, 0); err != nil {
				return nil, err
			}
			return s.New(src)
		}, "leak on empty: before the first event: I2 (regions): "},
		{"closed", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
			a, err := s.New(src)
			return &reopened{wrap.Forward(a, nil)}, err
		}, "closed on empty: at the end: I33 (closed): "},
	} {
		setup, err := setting.Catalogue{setting.SpecOf(c.name, "", c.build, setting.Preset{})}.Lookup(c.name, nil)
		require.NoError(t, err)
		require.ErrorContains(t, judged(t, empty, setup, sim.Config{}), c.want)
	}
}

// judged replays a trace as replay --check does.
func judged(t *testing.T, tr *trace.Trace, s setting.Setup, on sim.Config) error {
	t.Helper()
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	return checkReplay(p, tr, s, on, replay.Options{})
}

// TestCheckReplayOfCallThatHangsOrPanics stops one call of a strategy: by a clock that runs only
// while everything waits, and by a panic.
func TestCheckReplayOfCallThatHangsOrPanics(t *testing.T) {
	tr := &trace.Trace{Header: trace.Header{Name: "four"}, Tags: []string{""}, Slots: 2, Events: []trace.Event{
		{Kind: trace.Alloc, ID: 1, Size: 512}, {Kind: trace.Alloc, ID: 2, Size: 512, Slot: 1},
		{Kind: trace.Free, ID: 1}, {Kind: trace.Free, ID: 2, Slot: 1},
	}}
	for at, place := range map[string]string{
		"New": "before the first event", "Alloc": "event 1", "Free": "event 2", "Walk": "event 3", "Close": "at the end",
	} {
		for _, c := range []struct {
			name string
			stop func(release chan struct{})
			want string
		}{
			{"hangs", func(release chan struct{}) { <-release }, "I36 (termination): the call did not return within 10s"},
			{"panics", func(chan struct{}) { panic("lost") }, "I35 (no panic): panic: lost"},
		} {
			t.Run(at+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					defer close(release)
					stop := func() { c.stop(release) }
					build := func(src device.Source, _ struct{}) (alloc.Strategy, error) {
						if at == "New" {
							stop()
						}
						s, err := everything.Lookup("bestfit", nil)
						require.NoError(t, err)
						a, err := s.New(src)
						return &stopped{wrap.Forward(a, nil), at, stop}, err
					}
					s, err := setting.Catalogue{setting.SpecOf("stopped", "", build, setting.Preset{})}.Lookup("stopped", nil)
					require.NoError(t, err)
					err = judged(t, tr, s, sim.Config{})
					require.ErrorContains(t, err, "stopped on four: "+place+": "+c.want)
					require.ErrorAs(t, err, new(failure), "the exit status is 1")
				})
			})
		}
	}
}

// stopped is a strategy that stops in one of its methods: in Alloc and Free once a block is live,
// in the others when none is left.
type stopped struct {
	wrap.Forwarder
	at   string // method
	stop func()
}

func (s *stopped) called(method string, live bool) {
	if stats := s.Stats(); method == s.at && stats.Allocs > 0 && live == (stats.Live > 0) {
		s.stop()
	}
}

func (s *stopped) Alloc(r alloc.Request) (alloc.Block, error) {
	s.called("Alloc", true)
	return s.Forwarder.Alloc(r)
}

func (s *stopped) Free(a device.Addr) error {
	s.called("Free", true)
	return s.Forwarder.Free(a)
}

func (s *stopped) Walk(yield func(alloc.Chunk) bool) {
	s.called("Walk", false)
	s.Forwarder.Walk(yield)
}

func (s *stopped) Close() error {
	s.called("Close", false)
	return s.Forwarder.Close()
}

// reopened is a strategy that works after it was closed.
type reopened struct{ wrap.Forwarder }

// Close implements [alloc.Strategy].
func (*reopened) Close() error { return nil }

func TestReplayCheckOfRecordedTrace(t *testing.T) {
	path := write(t, "t.trace", "# device=some card\n# config=unknown\n"+small)
	out := succeed(t, "replay", "--check", "--strategy", "bfc:growth", path)
	require.True(t, strings.HasSuffix(out, "every invariant held after each of 6 events\n"), out)
	out = succeed(t, "replay", "--check", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--placements", "-", path)
	require.Equal(t, "1 0 1024\n2 1024 256\n3 1280 2048\n4 OOM\n", out, "standard output holds what was asked for")
}

func TestReplayCheckHeader(t *testing.T) {
	const head = "# vramyard-trace 1\n# invariant=I1\n"
	path := write(t, "t.trace", head+"# config={\"limit\":4096}\n# device={\"capacity\":4096,\"align\":256}\n"+small)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "3 OOM\n"},
		{[]string{"--check"}, "4 OOM\n"},
		{[]string{"--check", "--config", `{"limit":"1KiB"}`}, "2 OOM\n"},
		{[]string{"--check", "--sim", `{"capacity":"2KiB","align":256}`}, "2 "},
	} {
		args := append([]string{"replay", "--strategy", "bfc", "--placements", "-"}, append(c.args, path)...)
		out := succeed(t, args...)
		if c.args == nil {
			require.NotContains(t, out, "OOM", "without --check the header is ignored")
		} else {
			require.Contains(t, out, c.want)
		}
	}
	bad := write(t, "bad.trace", head+"# device={\n"+small)
	status, _, stderr := command(t, "replay", "--check", "--strategy", "bfc", bad)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "bad: header: simulated device: ")
	bad = write(t, "nth.trace", head+"# fault-nth=x\n"+small)
	status, _, stderr = command(t, "replay", "--check", "--strategy", "bfc", bad)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "header fault-nth=x: want the number of a device call")
}
