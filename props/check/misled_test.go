package check_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// listener is a best fit that breaks when it is told of a mark while blocks are live.
type listener struct{ alloc.Strategy }

func (l listener) Mark(string) {
	if l.Stats().Live > 0 {
		panic("a mark between a request and its free")
	}
}

// TestForecastingStrategiesAreCheckedWithWrongForecasts finds a mistake that needs a mark, and
// repeats it.
func TestForecastingStrategiesAreCheckedWithWrongForecasts(t *testing.T) {
	setup, err := setting.Catalogue{
		setting.SpecOf("listener", "", func(src device.Source, c bestfit.Config) (alloc.Strategy, error) {
			s, err := bestfit.New(src, c)
			return listener{s}, err
		})}.Lookup("listener", nil)
	require.NoError(t, err)
	subjects, err := check.Subjects(setup, sim.Config{})
	require.NoError(t, err)
	half := len(subjects) / 2
	for i, s := range subjects[:half] {
		require.Equal(t, s.Name+"/misled", subjects[half+i].Name)
	}
	r, err := check.Run(t.Context(), subjects, check.Options{Sequences: 50, Seed: 1})
	require.NoError(t, err)
	for i, s := range r.Subjects {
		if !strings.HasSuffix(s.Subject.Name, "/misled") {
			require.Nil(t, s.Failure)
			continue
		}
		require.Equal(t, props.INoPanic, s.Failure.Violation.Number)
		story, err := check.Reproduce(subjects[i], s.Failure)
		require.NoError(t, err)
		require.Equal(t, props.INoPanic, story.Violation.Number)
	}
}
