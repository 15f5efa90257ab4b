package check_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/strategies"
)

// told is a report in a form that can be compared.
type told struct {
	Name    string
	Result  props.Result
	Failure string
	Trace   *trace.Trace
}

// tell returns what a report says.
func tell(r check.Report) (all []told) {
	for _, s := range r.Subjects {
		one := told{Name: s.Subject.Name, Result: s.Result}
		if s.Failure != nil {
			one.Failure, one.Trace = s.Failure.Error(), s.Failure.Trace
		}
		all = append(all, one)
	}
	return all
}

// TestSameOnAnyNumberOfWorkers plants bugs that only some seeds meet, so that workers find
// failures of later seeds before that of the first.
func TestSameOnAnyNumberOfWorkers(t *testing.T) {
	all := []props.Subject{
		tiny(t), breaking(tiny(t), forgetsFree), healthy(t, "bfc:growth", ""), breaking(healthy(t, "bfc", ""), panicsOnFree),
	}
	var first []told
	for _, workers := range []int{1, 2, 7} {
		var progress atomic.Int64
		o := check.Options{Sequences: 400, Seed: 1, Tries: 200, Faults: true, Workers: workers, Progress: func() {
			progress.Add(1)
		}}
		r, err := check.Run(t.Context(), all, o)
		require.NoError(t, err)
		assert.EqualValues(t, o.Batches(len(all)), progress.Load(), "%d workers", workers)
		if first == nil {
			first = tell(r)
			require.Len(t, r.Failures(), 2)
			assert.Greater(t, r.Failures()[0].Seed, int64(10), "a bug that the first seed meets tests nothing")
			assert.Equal(t, []int{410, 410}, []int{first[0].Result.Sequences, first[2].Result.Sequences})
			assert.Positive(t, first[0].Result.Faults)
			continue
		}
		assert.Equal(t, first, tell(r), "%d workers", workers)
	}
}

// TestFirstFailureIsThatOfOneRun checks that batches find what one long verification finds.
func TestFirstFailureIsThatOfOneRun(t *testing.T) {
	subject := breaking(tiny(t), forgetsFree)
	_, err := props.Verify(subject, props.Options{Sequences: 400, Seed: 1, Tries: 200})
	var want *props.Failure
	require.ErrorAs(t, err, &want)
	r, err := check.Run(t.Context(), []props.Subject{subject}, check.Options{Sequences: 400, Seed: 1, Tries: 200})
	require.NoError(t, err)
	require.Len(t, r.Failures(), 1)
	assert.Equal(t, want.Error(), r.Failures()[0].Error())
	assert.LessOrEqual(t, r.Sequences(), 400)
}

// TestSubjectThatCannotBeVerified is an error, and the same one whatever the workers.
func TestSubjectThatCannotBeVerified(t *testing.T) {
	none := props.Subject{Name: "none", New: func(device.Source) (alloc.Strategy, error) {
		return nil, errors.New("no luck")
	}}
	other := none
	other.Name = "other"
	for _, workers := range []int{1, 2, 7} {
		_, err := check.Run(t.Context(), []props.Subject{tiny(t), none, other},
			check.Options{Sequences: 100, Workers: workers})
		require.EqualError(t, err, "none: cannot be built: no luck")
	}
}

func TestNegativeOptions(t *testing.T) {
	for _, o := range []check.Options{{Sequences: -1}, {Operations: -1}, {Workers: -1}} {
		_, err := check.Run(t.Context(), nil, o)
		require.ErrorContains(t, err, "want no negative numbers")
	}
}

// TestEveryPresetHolds runs a few sequences on every name of the catalogue, and looks at
// whether they got anywhere.
func TestEveryPresetHolds(t *testing.T) {
	for _, name := range strategies.All().Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := check.Options{Sequences: 50, Seed: 1}
			if testing.Short() {
				o.Sequences = 10
			}
			r, err := check.Run(t.Context(), subjects(t, name, ""), o)
			require.NoError(t, err)
			for _, s := range r.Subjects {
				if n := s.Result; assert.Nil(t, s.Failure, "%v", s.Failure) {
					assert.Equal(t, o.Sequences, n.Sequences)
					for what, count := range map[string]int{
						"grants": n.Grants, "frees": n.Frees, "mistakes": n.Mistakes, "bad frees": n.BadFrees,
					} {
						assert.Positive(t, count, "%s: %s", s.Subject.Name, what)
					}
					if !testing.Short() {
						assert.Positive(t, n.OutOfMemory, s.Subject.Name)
					}
				}
			}
		})
	}
}

// TestGeometry holds the choice of devices to what Subjects says.
func TestGeometry(t *testing.T) {
	for _, c := range []struct {
		name, config string
		want         map[string]device.Size
	}{
		{"bfc", "", map[string]device.Size{"bfc@12MiB": 12 * device.MiB, "bfc@24MiB": 24 * device.MiB}},
		{"bfc", `{"limit":"1MiB"}`, map[string]device.Size{"bfc@768KiB": 768 * device.KiB, "bfc@1.50MiB": 1536 * device.KiB}},
		{"bfc", `{"limit":1000}`, map[string]device.Size{"bfc@768B": 768, "bfc@1.50KiB": 1536}},
		{"buddy:xdl", "", map[string]device.Size{"buddy:xdl@8GiB": 8 * device.GiB}},
		{"caching", "", map[string]device.Size{"caching@16MiB": 16 * device.MiB, "caching@160MiB": 160 * device.MiB}},
		{"buddy:xdl", `{"region_bytes":65536}`, map[string]device.Size{"buddy:xdl@512KiB": 512 * device.KiB}},
	} {
		got := map[string]device.Size{}
		for _, s := range subjects(t, c.name, c.config) {
			got[s.Name] = s.Device.Capacity
		}
		assert.Equal(t, c.want, got, "%s %s", c.name, c.config)
	}
}

func TestGeometryOfStrategyThatCannotBeBuilt(t *testing.T) {
	build := func(device.Source, struct{}) (alloc.Strategy, error) { return nil, errors.New("no luck") }
	setup, err := setting.Catalogue{setting.SpecOf("none", "", build, setting.Preset{})}.Lookup("none", nil)
	require.NoError(t, err)
	_, err = check.Subjects(setup, sim.Config{})
	require.EqualError(t, err, "none: no luck")
}

// failureOf returns the failure of a planted bug.
func failureOf(t *testing.T, s props.Subject) *props.Failure {
	t.Helper()
	r, err := check.Run(t.Context(), []props.Subject{s}, check.Options{Sequences: 400, Seed: 1, Tries: 200})
	require.NoError(t, err)
	require.Len(t, r.Failures(), 1)
	return r.Failures()[0]
}

// TestReproduce shows failures of every shape: in a call, a panic, an inspection, and at the end.
func TestReproduce(t *testing.T) {
	for _, c := range []struct {
		bug    bug
		number props.Number
		last   string // how the marked step begins, its address left out
		tail   []string
	}{
		{forgetsFree, props.IShown, "f 0x", []string{": done\n", " live ", "> invariant I14 (live chunks): "}},
		{panicsOnFree, props.INoPanic, "f 0x",
			[]string{": panic: a bad moment\n", "> invariant I35 (no panic): panic: a bad moment"}},
		{walksBadly, props.INoPanic, "a ", []string{"walk: panic: lost\n", "> invariant I35 (no panic): panic: lost"}},
		{keepsRegions, props.IClose, "close: done", []string{"> invariant I32 (close): "}},
	} {
		t.Run(string(c.bug), func(t *testing.T) {
			subject := breaking(tiny(t), c.bug)
			f := failureOf(t, subject)
			require.Equal(t, c.number, f.Violation.Number, "%v", f)
			var text strings.Builder
			require.NoError(t, retold(&text, subject, f))
			t.Log(text.String())
			_, marked, ok := strings.Cut(text.String(), "\n> ")
			require.True(t, ok)
			step, at, _ := strings.Cut(strings.TrimLeft(marked, " "), " ")
			assert.NotEmpty(t, step)
			assert.True(t, strings.HasPrefix(strings.TrimLeft(at, " "), c.last), at)
			for _, want := range c.tail {
				assert.Contains(t, at, want)
			}
			assert.Equal(t, 2, strings.Count("\n"+text.String(), "\n> "), "one marked step and the violation")
			assert.Contains(t, text.String(), "device: reserve 4096: 0x")
			story, err := check.Reproduce(subject, f)
			require.NoError(t, err)
			require.Equal(t, c.number, story.Violation.Number)
			require.Equal(t, "build the strategy", story.Steps[0].Call)
			for _, s := range story.Steps {
				tiled(t, s)
			}
		})
	}
}

// tiled holds that the rows of a step leave no gap in any region: what is left out lies where it is
// said.
func tiled(t *testing.T, s check.Step) {
	t.Helper()
	for i, r := range s.Rows {
		if i > 0 && s.Rows[i-1].Region == r.Region {
			b := s.Rows[i-1]
			require.Equal(t, b.Addr.Add(b.Size*device.Size(1+b.More)), r.Addr)
		}
	}
}

// retold writes the story of a failure.
func retold(w io.Writer, s props.Subject, f *props.Failure) error {
	story, err := check.Reproduce(s, f)
	return errors.Join(err, story.WriteText(w))
}

// TestReproduceOfKeptInvariant is an error: the failure cannot have been of this subject.
func TestReproduceOfKeptInvariant(t *testing.T) {
	f := failureOf(t, breaking(tiny(t), forgetsFree))
	var text strings.Builder
	require.ErrorContains(t, retold(&text, tiny(t), f), "was not broken again")
	assert.Contains(t, text.String(), "kept this time")
}

// TestReproduceAfterPlannedFault shows the device call that was refused.
func TestReproduceAfterPlannedFault(t *testing.T) {
	subject := tiny(t)
	inner := subject.New
	subject.Name = "hopeful"
	subject.New = func(src device.Source) (alloc.Strategy, error) { return inner(hopeful{src}) }
	r, err := check.Run(t.Context(), []props.Subject{subject}, check.Options{Sequences: 400, Seed: 1, Tries: 200,
		Faults: true})
	require.NoError(t, err)
	f := failureOf(t, subject)
	require.Equal(t, r.Failures()[0].Error(), f.Error(), "a failure that needs no planned fault is found without")
	var text strings.Builder
	require.NoError(t, retold(&text, subject, f))
	assert.Contains(t, text.String(), "device: out of memory")
}

// hopeful is a source that makes up a region when the device has none.
type hopeful struct{ device.Source }

// Reserve implements [device.Source].
func (h hopeful) Reserve(size, align device.Size) (device.Region, error) {
	r, err := h.Source.Reserve(size, align)
	if err != nil {
		return device.Region{Addr: sim.Base + 1<<50, Size: size}, nil
	}
	return r, nil
}

func TestAStoppedVerificationHasWhatIsDone(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := check.Options{Sequences: 400, Operations: 20, Seed: 1, Workers: 1, Progress: stop}
	setup, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	subjects, err := check.Subjects(setup, sim.Config{})
	require.NoError(t, err)
	r, err := check.Run(ctx, subjects, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Subjects, 1, "only the first was reached")
	require.Equal(t, 50, r.Sequences(), "one batch")
}

// TestCallThatHangsEndsTheCheck has a subject before the one that hangs, and one that is not
// reached. The clock runs only while everything waits.
func TestCallThatHangsEndsTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		subjects := []props.Subject{tiny(t), hanging(tiny(t), hangsOnFree, release), tiny(t)}
		r, err := check.Run(t.Context(), subjects, check.Options{Sequences: 50, Operations: 60, Seed: 1, Workers: 1,
			Patience: time.Minute})
		require.NoError(t, err)
		require.Equal(t, 50, r.Subjects[0].Result.Sequences)
		require.Zero(t, r.Subjects[2].Result.Sequences)
		f := r.Subjects[1].Failure
		require.NotNil(t, f)
		require.True(t, f.Hung)
		require.Equal(t, props.ITerminates, f.Violation.Number)
		require.Contains(t, f.Error(), "did not return within 1m0s")
		story, err := check.Reproduce(subjects[1], f)
		require.NoError(t, err)
		require.Contains(t, story.Steps[len(story.Steps)-1].Call, "did not return within 1m0s")
	})
}
