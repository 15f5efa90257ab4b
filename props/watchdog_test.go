package props_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

// stalled is a first fit that does not return from one of its methods until it is released.
type stalled struct {
	*firstFit
	at      string // method
	release chan struct{}
}

func (s *stalled) stall(method string, now bool) {
	if method == s.at && now {
		<-s.release
	}
}

func (s *stalled) Alloc(r alloc.Request) (alloc.Block, error) {
	s.stall("Alloc", s.stats.Allocs == 5)
	return s.firstFit.Alloc(r)
}

func (s *stalled) Trim() (device.Size, error) {
	s.stall("Trim", true)
	return s.firstFit.Trim()
}

func (s *stalled) Walk(yield func(alloc.Chunk) bool) {
	s.stall("Walk", s.stats.Frees == 2)
	s.firstFit.Walk(yield)
}

func (s *stalled) Close() error {
	s.stall("Close", s.stats.Allocs > 0)
	return s.firstFit.Close()
}

// TestCallThatHangsIsAFailure lets one method block for ever, by a clock that runs only while
// everything waits.
func TestCallThatHangsIsAFailure(t *testing.T) {
	for _, c := range []struct {
		at, detail string
	}{
		{at: "Alloc", detail: "a "},
		{at: "Trim", detail: "trim did not return within 10s"},
		{at: "Walk", detail: "looking at the strategy after f "},
		{at: "Close", detail: "a closing step did not return"},
		{at: "New", detail: "building and closing an instance did not return within 10s"},
	} {
		t.Run(c.at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				subject := firstFitSubject(none)
				inner := subject.New
				subject.New = func(src device.Source) (alloc.Strategy, error) {
					if c.at == "New" {
						<-release
					}
					s, err := inner(src)
					if err != nil {
						return nil, err
					}
					return &stalled{s.(*firstFit), c.at, release}, nil
				}
				r, err := props.Verify(subject, props.Options{Sequences: 20, Seed: 7})
				var f *props.Failure
				require.ErrorAs(t, err, &f)
				t.Log(f)
				require.Equal(t, props.ITerminates, f.Violation.Number)
				require.Contains(t, f.Violation.Detail, c.detail)
				require.True(t, f.Hung)
				require.LessOrEqual(t, r.Sequences, 20)
				var text bytes.Buffer
				require.NoError(t, f.WriteTrace(&text))
				require.ErrorIs(t, props.Repeat(subject, f), f.Violation)
			})
		})
	}
}

// TestSmallerSequenceThatHangsIsLeftOut finds a lie after the fifth block. A sequence of four
// blocks hangs, so that the shrinker must stop at five.
func TestSmallerSequenceThatHangsIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		subject := firstFitSubject(none)
		inner := subject.New
		subject.New = func(src device.Source) (alloc.Strategy, error) {
			s, err := inner(src)
			return &liar{s.(*firstFit), release}, err
		}
		_, err := props.Verify(subject, props.Options{Sequences: 20, Seed: 7})
		var f *props.Failure
		require.ErrorAs(t, err, &f)
		require.False(t, f.Hung)
		require.Equal(t, props.ICounters, f.Violation.Number)
		require.GreaterOrEqual(t, len(f.Sequence), 5)
		require.NotEmpty(t, f.Hanging)
		require.LessOrEqual(t, len(f.Hanging), 3)
		require.Contains(t, f.Error(), "left out, because they hang")
		require.ErrorAs(t, props.Repeat(subject, f), new(*props.Violation))
	})
}

// liar is a first fit that counts five blocks as six. With a channel it does not close after four.
type liar struct {
	*firstFit
	release chan struct{}
}

func (l *liar) Stats() alloc.Stats {
	s := l.firstFit.Stats()
	if s.Allocs >= 5 {
		s.Allocs++
	}
	return s
}

func (l *liar) Close() error {
	if l.stats.Allocs == 4 && l.release != nil {
		<-l.release
	}
	return l.firstFit.Close()
}

func TestConstructorThatPanicsIsAFailure(t *testing.T) {
	subject := firstFitSubject(none)
	subject.New = func(device.Source) (alloc.Strategy, error) { panic("not today") }
	_, err := props.Verify(subject, props.Options{Sequences: 20, Seed: 7})
	var f *props.Failure
	require.ErrorAs(t, err, &f)
	require.EqualValues(t, 7, f.Seed)
	require.Equal(t, props.INoPanic, f.Violation.Number)
	require.Equal(t, "panic: not today", f.Violation.Detail)
}

func TestGuardedReportsPanicAndHang(t *testing.T) {
	var v *props.Violation
	require.ErrorAs(t, props.Guarded(0, func(func()) error { panic("lost") }), &v)
	require.Equal(t, props.INoPanic, v.Number)
	require.Equal(t, "panic: lost", v.Detail)
	require.Contains(t, string(v.Stack), "TestGuarded")
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		require.ErrorAs(t, props.Guarded(time.Minute, func(func()) error { <-release; return nil }), &v)
		require.Equal(t, props.ITerminates, v.Number)
		require.NoError(t, props.Guarded(time.Minute, func(beat func()) error {
			for range 100 {
				time.Sleep(40 * time.Second)
				beat()
			}
			return nil
		}))
	})
}
