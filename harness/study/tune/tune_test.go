package tune_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/kit/regions"
)

// toyConfig is the configuration of a strategy whose memory is known in advance: it wants a
// region of so many MiB, whatever the trace.
type toyConfig struct {
	Base  int    `json:"base" doc:"MiB wanted" grid:"40,20,30"`
	Extra int    `json:"extra" doc:"MiB wanted besides" grid:"0,10,4"`
	Mode  string `json:"mode" doc:"good needs 4 MiB less, but only with no extra; odd is no value" grid:"plain,good,odd"`
	Size  int    `json:"size" doc:"of no consequence"`
}

func (c toyConfig) WithDefaults() (toyConfig, error) {
	if c.Base == 0 {
		c.Base = 40
	}
	if c.Mode == "" {
		c.Mode = "plain"
	}
	if c.Mode == "odd" {
		return c, errors.New("toy: mode: odd")
	}
	return c, nil
}

// mib is what the configuration needs.
func (c toyConfig) mib() int {
	n := c.Base + c.Extra
	if c.Mode == "good" && c.Extra == 0 {
		n -= 4
	}
	return n
}

// toy is one region of which blocks are cut and never reused.
type toy struct {
	regions.One
	next device.Addr
	live map[device.Addr]device.Size
}

func newToy(src device.Source, c toyConfig) (*toy, error) {
	one, err := regions.ReserveOne(src, device.Size(c.mib())*device.MiB, 0)
	return &toy{one, one.Region.Addr, map[device.Addr]device.Size{}}, err
}

func (s *toy) Alloc(r alloc.Request) (alloc.Block, error) {
	b := alloc.Block{Addr: s.next, Size: r.Size}
	s.next = s.next.Add(r.Size)
	s.live[b.Addr] = b.Size
	s.Counters.Granted(r.Size, b.Size)
	return b, nil
}

func (s *toy) Free(a device.Addr) error {
	s.Counters.Freed(s.live[a], s.live[a])
	return nil
}

func (s *toy) Walk(func(alloc.Chunk) bool) {}

func (s *toy) Check() error { return nil }

func toys() setting.Catalogue {
	return setting.Catalogue{setting.SpecOf("toy", "a toy", newToy,
		setting.Preset{Doc: "bare"}, setting.Preset{Name: "extra", Doc: "with extra", JSON: `{"extra":10}`})}
}

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "t", trace.Options{})
	require.NoError(t, err)
	return tr
}

func search(t *testing.T, name, fixed string, o tune.Options) *tune.Result {
	t.Helper()
	r, err := tune.Tune(t.Context(), []*trace.Trace{read(t, "a 1 2MiB\nf 1\n"), read(t, "a 1 4MiB\n")}, toys(), name,
		json.RawMessage(fixed), o)
	require.NoError(t, err)
	return r
}

func TestWholeGridIsEvaluated(t *testing.T) {
	r := search(t, "toy", "", tune.Options{})
	require.True(t, r.Whole)
	require.EqualValues(t, 27, r.Space)
	require.Equal(t, 18, r.Evaluated, "odd is refused, and the preset is a point of the grid")
	require.Equal(t, 9, r.Refused)
	require.JSONEq(t, `{"base":20,"extra":0,"mode":"good"}`, string(r.Smallest.Config))
	require.InDelta(t, 16/2.8284, *r.Smallest.TimesBound, 1e-3, "the mean of 16/2 and 16/4")
	require.InDelta(t, 40/2.8284, *r.Preset.TimesBound, 1e-3)
	require.Len(t, r.Smallest.Runs, 2)
	require.Equal(t, r.Searched[0].TimesBound, r.Smallest.TimesBound)
}

func TestDescentFindsTheSame(t *testing.T) {
	for _, points := range []int{7, 16} {
		r := search(t, "toy:extra", "", tune.Options{Points: points})
		require.False(t, r.Whole)
		require.JSONEq(t, `{"base":20,"extra":0,"mode":"good"}`, string(r.Smallest.Config))
		var worths []string
		for _, w := range r.Effects {
			for _, c := range w.Others {
				worths = append(worths, fmt.Sprintf("%s %s>%s %.3f", w.Setting, w.Value, c.Value, *c.Memory))
			}
		}
		require.Equal(t, []string{
			"base 20>40 2.250", "base 20>30 1.625", "extra 0>10 1.875", "extra 0>4 1.500", `mode "good">"plain" 1.250`,
		}, worths)
		if points == 7 {
			// The descent for memory uses them up. The descent for time, whose path depends on the
			// clock, does not begin.
			require.Equal(t, 14, r.Evaluated, "of the 18 points of the grid")
		}
	}
}

func TestGivenSettingsStay(t *testing.T) {
	r := search(t, "toy", `{"base":30}`, tune.Options{Knobs: []string{"mode"}})
	require.JSONEq(t, `{"base":30,"mode":"good"}`, string(r.Smallest.Config))
	require.Len(t, r.Grid, 1)
	r = search(t, "toy", `{"base":30,"extra":0,"mode":"plain"}`, tune.Options{})
	require.Equal(t, 1, r.Evaluated, "nothing is left to vary")
}

func TestSameOnAnyNumberOfCores(t *testing.T) {
	one, four := search(t, "toy:extra", "", tune.Options{Points: 16, Workers: 1}),
		search(t, "toy:extra", "", tune.Options{Points: 16, Workers: 4})
	require.Equal(t, one.Smallest.Config, four.Smallest.Config)
	require.Equal(t, one.Smallest.TimesBound, four.Smallest.TimesBound)
	require.Equal(t, one.Preset.TimesBound, four.Preset.TimesBound)
}

func TestProgressEndsAtTheEnd(t *testing.T) {
	var last, most atomic.Int64
	search(t, "toy", "", tune.Options{Progress: func(done, known int) {
		last.Store(max(last.Load(), int64(done)))
		most.Store(max(most.Load(), int64(known)))
	}})
	require.Equal(t, most.Load(), last.Load())
	require.NotZero(t, last.Load())
}

func TestRefusals(t *testing.T) {
	traces := []*trace.Trace{read(t, "a 1 2MiB\n")}
	for _, c := range []struct {
		name, fixed string
		knobs       []string
		want        string
	}{
		{"tay", "", nil, `unknown strategy "tay"`},
		{"toy", `{"mode":"odd"}`, nil, "toy: mode: odd"},
		{"toy", "", []string{"bass"},
			`toy: setting "bass" has no grid values: did you mean "base"? want some of base, extra, mode`},
		{"toy", "", []string{"size"}, `setting "size" has no grid values`},
		{"toy", "", []string{"mode", "mode"}, `toy: duplicate setting "mode"`},
		{"toy", `{"base":20}`, []string{"base"}, `setting "base" has no grid values`},
	} {
		_, err := tune.Tune(t.Context(), traces, toys(), c.name, json.RawMessage(c.fixed), tune.Options{Knobs: c.knobs})
		require.ErrorContains(t, err, c.want)
	}
	_, err := tune.Tune(t.Context(), []*trace.Trace{read(t, "mark x\n")}, toys(), "toy", nil, tune.Options{})
	require.ErrorContains(t, err, "trace t has no allocations")
}

func TestTablesShowTheAnswer(t *testing.T) {
	var text strings.Builder
	require.NoError(t, report.TuneTables(&text, search(t, "toy", "", tune.Options{})))
	for _, want := range []string{
		"toy: 18 of 27 grid points evaluated, exhaustively; 9 refused", "least memory", "base=20 extra=0 mode=good",
		"40 +125.0 %", `vramyard replay --strategy toy --config '{"base":20,"extra":0,"mode":"good"}' TRACE`,
	} {
		require.Contains(t, text.String(), want)
	}
}

func TestAStoppedSearchHasWhatIsEvaluated(t *testing.T) {
	// With one worker two runs may be under way, so that a point on three traces is not complete
	// when the first run is. The preset is evaluated alone, before other points.
	traces := []*trace.Trace{read(t, "a 1 2MiB\nf 1\n"), read(t, "a 1 4MiB\n"), read(t, "a 1 6MiB\n")}
	for done, wanted := range map[int]bool{1: false, 8: true} {
		ctx, stop := context.WithCancel(t.Context())
		r, err := tune.Tune(ctx, traces, toys(), "toy", nil, tune.Options{Workers: 1, Points: 10, Progress: func(n, _ int) {
			if n == done {
				stop()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		if !wanted {
			require.Nil(t, r, "no point has a run on each trace")
			continue
		}
		require.NotNil(t, r)
		require.Less(t, r.Evaluated, 18)
		require.Len(t, r.Searched, r.Evaluated)
		require.Len(t, r.Preset.Runs, 3)
		require.LessOrEqual(t, *r.Smallest.TimesBound, *r.Preset.TimesBound)
	}
}
