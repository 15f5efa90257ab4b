package props_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
)

// credulous is a first fit that believes what a program says of itself.
type credulous struct {
	*firstFit
	plans, hints bool
	frees        int // still expected by the forecast
	planned      bool
	fleeting     []device.Addr // granted with the hint that they are freed before the next mark
}

func (c *credulous) Plan(f power.Forecast) {
	c.planned = c.plans
	for x := range f {
		if x.Kind == power.ExpectFree {
			c.frees++
		}
	}
}

func (c *credulous) Mark(string) {
	for _, a := range c.fleeting {
		_ = c.firstFit.Free(a)
	}
	c.fleeting = c.fleeting[:0]
}

func (c *credulous) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := c.firstFit.Alloc(r)
	if err == nil && c.hints && r.Origin.Lifetime() == alloc.LifeMark {
		c.fleeting = append(c.fleeting, b.Addr)
	}
	return b, err
}

func (c *credulous) Free(a device.Addr) error {
	err := c.firstFit.Free(a)
	if err == nil && c.planned {
		if c.frees--; c.frees < 0 {
			panic("more frees than the forecast has")
		}
	}
	return err
}

func credulousSubject(plans, hints bool) props.Subject {
	s := firstFitSubject(none)
	s.Name = "credulous"
	s.New = func(src device.Source) (alloc.Strategy, error) {
		f, err := newFirstFit(src, none)
		return &credulous{firstFit: f, plans: plans, hints: hints}, err
	}
	return s
}

// TestWrongForecastsFindBugs checks strategies that rely on a forecast or a hint. They keep
// every invariant until these are wrong, and the failure can be repeated.
func TestWrongForecastsFindBugs(t *testing.T) {
	o := props.Options{Sequences: 100, Seed: 1}
	for _, c := range []struct{ plans, hints bool }{{true, false}, {false, true}} {
		s := credulousSubject(c.plans, c.hints)
		require.True(t, s.Learns())
		_, err := props.Verify(s, o)
		require.NoError(t, err)

		s = s.Misled()
		_, err = props.Verify(s, o)
		var f, again *props.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, "credulous/misled", f.Subject)
		var v *props.Violation
		require.ErrorAs(t, props.Repeat(s, f), &v)
		require.Equal(t, f.Violation.Number, v.Number)
		_, err = props.Verify(s, o)
		require.ErrorAs(t, err, &again)
		require.Equal(t, f.Sequence, again.Sequence)
		require.Equal(t, f.Trace, again.Trace)
		if c.hints {
			var text strings.Builder
			require.NoError(t, f.WriteTrace(&text))
			require.Contains(t, text.String(), "life=mark")
			require.Contains(t, text.String(), "\nmark \"\"\n")
			read, err := trace.Read(strings.NewReader(text.String()), "t.trace", trace.Options{})
			require.NoError(t, err)
			require.Len(t, read.Events, len(f.Trace.Events))
		}
	}
}

// TestWrongForecastsKeepTheSequences misleads a strategy that does not listen.
func TestWrongForecastsKeepTheSequences(t *testing.T) {
	s := firstFitSubject(none)
	require.False(t, s.Learns())
	o := props.Options{Sequences: 40, Seed: 5}
	plain, err := props.Verify(s, o)
	require.NoError(t, err)
	misled, err := props.Verify(s.Misled(), o)
	require.NoError(t, err)
	plain.Elapsed, misled.Elapsed = 0, 0
	require.Equal(t, plain, misled)
	require.Equal(t, s.Misled().Name, s.Misled().Misled().Name)
}
