package props_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
)

// journal is what an instance of a strategy answered.
type journal []wrap.Operation

// journalled returns the test strategy that writes down the answers of each instance.
func journalled(all *[]*journal) func(device.Source, struct{}) (alloc.Strategy, error) {
	return func(src device.Source, _ struct{}) (alloc.Strategy, error) {
		a, err := newFirstFit(src, none)
		if err != nil {
			return nil, err
		}
		j := &journal{}
		*all = append(*all, j)
		return wrap.Recorded(a, func(o wrap.Operation) {
			o.Request.Tag = 0 // a number in the suite, an index of texts in a replay
			*j = append(*j, o)
		})
	}
}

// TestTraceRepeatsSequence replays what generated sequences were recorded as, illegal frees
// and device faults among it, through the text form: every call must get the same answer.
func TestTraceRepeatsSequence(t *testing.T) {
	subject := firstFitSubject(none)
	var all []*journal
	subject.New = func(src device.Source) (alloc.Strategy, error) { return journalled(&all)(src, struct{}{}) }
	p := props.Profile{Operations: 100, Quantum: ffQuantum, Max: ffLimit, Room: ffLimit}
	for seed := range int64(100) {
		all = nil
		recorded, err := props.TraceOf(subject, draw(t, p, seed))
		require.NoError(t, err)
		var file bytes.Buffer
		require.NoError(t, trace.Write(&file, recorded))
		read, err := trace.Read(&file, "sequence.trace", trace.Options{})
		require.NoError(t, err)

		catalogue := setting.Catalogue{setting.SpecOf("first-fit", "", journalled(&all), setting.Preset{})}
		setup, err := catalogue.Lookup("first-fit", nil)
		require.NoError(t, err)
		dev, err := sim.New(subject.Device)
		require.NoError(t, err)
		_, err = replay.Run(read, setup, dev, replay.Options{})
		require.NoError(t, err)

		require.Len(t, all, 3, "the suite's two instances and the replay's")
		want, got := *all[0], *all[2]
		want = want[:min(len(got), len(want))] // the suite trims and calls once more at the end
		require.Equal(t, want, got, "seed %d", seed)
		require.Greater(t, len(got), 50)
	}
}
