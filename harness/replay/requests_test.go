package replay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// labelled aligns each block by the labels of its request.
type labelled struct{ wrap.Forwarder }

func (l *labelled) Alloc(r alloc.Request) (alloc.Block, error) {
	origin := 5*r.Origin.Site() + uint64(r.Origin.Thread()) + 2*uint64(r.Origin.Lifetime())
	r.Align = 512 << ((r.Tag + 3*r.ID + origin) % 7)
	return l.Forwarder.Alloc(r)
}

// byLabels returns a best fit that aligns by labels and keeps its operations.
func byLabels(t *testing.T, ops *[]wrap.Operation) setting.Setup {
	inner, err := strategies.All().Lookup("bestfit", nil)
	require.NoError(t, err)
	catalogue := setting.Catalogue{
		setting.SpecOf("labelled", "", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
			s, err := inner.New(src)
			if err != nil {
				return nil, err
			}
			return wrap.Recorded(&labelled{wrap.Forward(s, nil)}, func(o wrap.Operation) { *ops = append(*ops, o) })
		}, setting.Preset{})}
	setup, err := catalogue.Lookup("labelled", nil)
	require.NoError(t, err)
	return setup
}

// TestLabelsDecideAlikeUnderObservation replays through a strategy that decides by labels, with
// each option that makes the replay watch single calls: requests and placements stay the same.
func TestLabelsDecideAlikeUnderObservation(t *testing.T) {
	const events = "a 70 1000 tag=weights site=0xabc thread=2\na 3 2000 tag=grads life=step\na 41 500\nf 3\na 5 " +
		"3000 tag=grads thread=1\na 9 700 align=64\nf 70\na 70 100\n"
	for _, header := range []string{"", "# request-tags=ids\n"} {
		tr, err := trace.Read(strings.NewReader(header+events), "labels.trace", trace.Options{})
		require.NoError(t, err)
		record := func(o replay.Options) (ops []wrap.Operation) {
			dev, err := sim.New(sim.Config{})
			require.NoError(t, err)
			_, err = replay.Run(tr, byLabels(t, &ops), dev, o)
			require.NoError(t, err)
			return ops
		}
		plain := record(replay.Options{})
		require.Len(t, plain, len(tr.Events))
		for i, tag := range []uint64{1, 2, 0, 0, 2, 0, 0, 0} {
			if e := &tr.Events[i]; e.Kind == trace.Alloc {
				if header != "" {
					tag = e.ID
				}
				require.Equal(t, tag, plain[i].Request.Tag, "event %d", i)
				require.Equal(t, e.ID, plain[i].Request.ID, "event %d", i)
				require.Equal(t, e.Origin(), plain[i].Request.Origin, "event %d", i)
			}
		}
		var seen []alloc.Request
		require.Equal(t, plain, record(replay.Options{Observe: func(o replay.Observation) error {
			if o.Request.Size > 0 {
				seen = append(seen, o.Request)
			}
			return nil
		}}))
		require.Len(t, seen, 6)
		require.Equal(t, plain[0].Request, seen[0])
		require.Equal(t, plain, record(replay.Options{Latency: true}))
		require.Equal(t, plain, record(replay.Options{Figures: true, Placements: &strings.Builder{}}))
	}
}

// TestRequestTagsHaveOneForm refuses a header that names another form.
func TestRequestTagsHaveOneForm(t *testing.T) {
	_, err := run(t, "# request-tags=texts\na 1 1\n", "bfc", ``, sim.Config{}, replay.Options{})
	require.EqualError(t, err, "test: header request-tags=texts: want ids")
}

// marked is a strategy that keeps the marks of the program.
type marked struct {
	alloc.Strategy
	marks *[]string
}

func (m marked) Mark(text string) { *m.marks = append(*m.marks, text) }

// TestMarksReachTheStrategy replays marks through a strategy with the power Informed, also behind a
// wrapper, and through one without it.
func TestMarksReachTheStrategy(t *testing.T) {
	inner, err := strategies.All().Lookup("tlsf", nil)
	require.NoError(t, err)
	for _, wrap := range []func(alloc.Strategy) (alloc.Strategy, error){
		func(s alloc.Strategy) (alloc.Strategy, error) { return s, nil },
		wrap.Locked,
	} {
		var marks []string
		setup, err := setting.Catalogue{
			setting.SpecOf("marked", "", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
				s, err := inner.New(src)
				if err != nil {
					return nil, err
				}
				return wrap(marked{s, &marks})
			}, setting.Preset{})}.Lookup("marked", nil)
		require.NoError(t, err)
		tr, err := trace.Read(strings.NewReader("mark \"step 1\"\na 1 100\nmark \"step 2\"\nf 1\n"), "marks.trace",
			trace.Options{})
		require.NoError(t, err)
		for _, s := range []setting.Setup{setup, inner} {
			dev, err := sim.New(sim.Config{})
			require.NoError(t, err)
			res, err := replay.Run(tr, s, dev, replay.Options{})
			require.NoError(t, err)
			require.Zero(t, res.Ignored)
		}
		require.Equal(t, []string{"step 1", "step 2"}, marks)
	}
}
