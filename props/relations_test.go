package props_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

func TestDifferentialPassesEqualStrategies(t *testing.T) {
	a, b := firstFitSubject(none), firstFitSubject(wrongOrder)
	r, err := props.Differential([]props.Subject{a, b}, props.Options{Sequences: 300})
	require.NoError(t, err)
	t.Log(r)
	assert.Equal(t, 300, r.Sequences)
	for name, n := range map[string]int{
		"grants": r.Grants, "frees": r.Frees, "mistakes": r.Mistakes, "bad frees": r.BadFrees,
	} {
		assert.Greater(t, n, 300, name)
	}
	assert.Zero(t, r.OutOfMemory, "there is room enough")
}

// TestDifferentialNamesTheDisagreeingStrategy plants bugs in one of three strategies. The failure
// must name it, beside one of the others.
func TestDifferentialNamesTheDisagreeingStrategy(t *testing.T) {
	for b, want := range map[bug]props.Number{
		ignoresAlign:      props.IAgreement,
		acceptsZero:       props.IAgreement,
		acceptsOverflow:   props.IAgreement,
		acceptsDoubleFree: props.IAgreement,
		acceptsInterior:   props.IAgreement,
		forgetsTag:        props.IAgreement,
		panicsOnManyFrees: props.INoPanic,
	} {
		t.Run(string(b), func(t *testing.T) {
			good, bad, other := firstFitSubject(none), firstFitSubject(b), firstFitSubject(none)
			bad.Name, other.Name = "bad", "other"
			_, err := props.Differential([]props.Subject{good, bad, other}, props.Options{Sequences: 300, Seed: 1})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number)
			if want == props.IAgreement {
				assert.Equal(t, "first-fit and bad", f.Subject)
			} else {
				assert.Contains(t, f.Violation.Detail, "bad: panic")
			}
			assert.LessOrEqual(t, len(f.Sequence), 12, "%v", f)
			var file bytes.Buffer
			require.NoError(t, f.WriteTrace(&file))
		})
	}
}

func TestDifferentialWantsTwo(t *testing.T) {
	_, err := props.Differential([]props.Subject{firstFitSubject(none)}, props.Options{})
	require.ErrorContains(t, err, "at least two")
}

// TestIdenticalFindsDifferences compares a first fit with itself, and with one whose bug shows in
// an answer, in the statistics or in a refusal.
func TestIdenticalFindsDifferences(t *testing.T) {
	good := firstFitSubject(none)
	r, err := props.Identical(good, firstFitSubject(none), props.Options{Sequences: 300})
	require.NoError(t, err)
	assert.Greater(t, r.OutOfMemory, 300)
	for _, b := range []bug{refusesOften, acceptsInterior, peakFollows, wrongReason} {
		bad := firstFitSubject(b)
		bad.Name = "bad"
		_, err := props.Identical(good, bad, props.Options{Sequences: 300, Seed: 1})
		f := requireFailure(t, err)
		assert.Equal(t, props.IAgreement, f.Violation.Number, "%v", b)
		assert.Equal(t, "first-fit and bad", f.Subject)
	}
	bad := good
	bad.New = func(device.Source) (alloc.Strategy, error) { return nil, errors.New("no luck") }
	_, err = props.Identical(good, bad, props.Options{})
	require.ErrorContains(t, err, "cannot be built: no luck")
}

func TestMetamorphicPassesCorrectStrategy(t *testing.T) {
	r, err := props.Metamorphic(firstFitSubject(none), props.Options{Sequences: 300})
	require.NoError(t, err)
	t.Log(r)
	for name, n := range map[string]int{
		"grants": r.Grants, "frees": r.Frees, "out of memory": r.OutOfMemory, "mistakes": r.Mistakes, "bad frees": r.BadFrees,
	} {
		assert.Greater(t, n, 300, name)
	}
}

// swayed is a first fit that grants a quantum more than it should, by something that must
// not matter.
type swayed struct {
	*firstFit
	by     string
	looked int
	erred  int
}

func (s *swayed) Alloc(r alloc.Request) (alloc.Block, error) {
	own := r
	moved := false
	switch s.by {
	case "tag":
		moved = r.Tag > 1<<32
	case "stream":
		moved = r.Stream == 2
	case "hint":
		moved = r.Hint == alloc.HintLow
	case "before":
		moved = r.Before > 2
	case "looking":
		moved = s.looked > 0
	case "mistakes":
		moved = s.erred > 2 && s.erred%2 == 1
	case "addresses":
		for c := range s.firstFit.Walk {
			moved = moved || c.Addr > 1<<57
		}
	}
	if moved && r.Size > 0 && r.Size <= ffLimit-ffQuantum {
		own.Size += ffQuantum
	}
	b, err := s.firstFit.Alloc(own)
	if err != nil {
		s.erred++
	}
	return b, err
}

// Check looks, and is called by nobody but who looks.
func (s *swayed) Check() error {
	s.looked++
	return nil
}

func (s *swayed) Free(a device.Addr) error {
	err := s.firstFit.Free(a)
	if s.by != "undoing" || err != nil {
		return err
	}
	for _, region := range s.regions {
		for i := range region {
			if c := &region[i]; c.State == alloc.Free && c.Size == ffQuantum {
				c.State = alloc.Slack // a piece too small to bother
			}
		}
	}
	return nil
}

// TestMetamorphicFindsForbiddenDependencies plants a dependence on each thing that must not matter.
func TestMetamorphicFindsForbiddenDependencies(t *testing.T) {
	for by, want := range map[string]props.Number{
		"tag":       props.IIndifference,
		"stream":    props.IIndifference,
		"hint":      props.IIndifference,
		"before":    props.IIndifference,
		"looking":   props.IObservation,
		"mistakes":  props.ITraceless,
		"addresses": props.ITranslation,
		"undoing":   props.IUndo,
	} {
		t.Run(by, func(t *testing.T) {
			s := firstFitSubject(none)
			s.New = func(src device.Source) (alloc.Strategy, error) {
				inner, err := newFirstFit(src, none)
				return &swayed{firstFit: inner, by: by}, err
			}
			_, err := props.Metamorphic(s, props.Options{Sequences: 300, Seed: 1})
			f := requireFailure(t, err)
			assert.Equal(t, want, f.Violation.Number, "%v", f)
			assert.LessOrEqual(t, len(f.Sequence), 8, "%v", f)
			var file bytes.Buffer
			require.NoError(t, f.WriteTrace(&file))

			s.Promises.Except = []promise.Exception{{Invariant: want.String(), Reason: "a test"}}
			_, err = props.Metamorphic(s, props.Options{Sequences: 50, Seed: 1})
			require.NoError(t, err, "an exception is respected")
		})
	}
}

// TestSingleSequences checks the forms that a fuzzer uses, which run one sequence.
func TestSingleSequences(t *testing.T) {
	seq, err := props.ParseSequence("a 64\na 64\nf 0\nbadfree freed 0\nfrontier 1\ntrim\na 1 stream=2\n")
	require.NoError(t, err)
	good, bad := firstFitSubject(none), firstFitSubject(acceptsDoubleFree)
	require.NoError(t, props.Agree([]props.Subject{good, good}, seq))
	requireBroken(t, props.IAgreement, props.Agree([]props.Subject{good, bad}, seq))
	require.NoError(t, props.Relate(good, seq))
	swaying := good
	swaying.New = func(src device.Source) (alloc.Strategy, error) {
		inner, err := newFirstFit(src, none)
		return &swayed{firstFit: inner, by: "stream"}, err
	}
	requireBroken(t, props.IIndifference,
		props.Relate(swaying, append(seq, props.Op{Kind: props.OpAlloc, Size: 1, Stream: 1})))
	require.NoError(t, props.Agree([]props.Subject{good, good}, nil), "an empty sequence")
	require.NoError(t, props.Relate(good, nil))
}

func TestUndone(t *testing.T) {
	chunk := func(at, size int, s alloc.State) alloc.Chunk {
		return alloc.Chunk{Region: device.Addr(at / 100 * 100), Addr: device.Addr(at), Size: device.Size(size), State: s}
	}
	before := []alloc.Chunk{chunk(100, 10, alloc.Live), chunk(110, 10, alloc.Free), chunk(120, 80, alloc.Free)}
	merged := []alloc.Chunk{chunk(100, 10, alloc.Live), chunk(110, 90, alloc.Free)}
	slack := []alloc.Chunk{chunk(100, 10, alloc.Live), chunk(110, 90, alloc.Slack), chunk(200, 100, alloc.Free)}
	pending := []alloc.Chunk{chunk(100, 10, alloc.Live), chunk(110, 10, alloc.Pending), chunk(120, 80, alloc.Free)}
	dead := []alloc.Chunk{chunk(100, 100, alloc.Free)}
	gone := []alloc.Chunk{chunk(100, 10, alloc.Live)}
	unmapped := []alloc.Chunk{chunk(100, 10, alloc.Live), chunk(110, 90, alloc.Unmapped)}

	assert.NoError(t, props.Undone(before, merged, false), "how the bytes are cut does not matter")
	assert.NoError(t, props.Undone(before, slack, true))
	assert.NoError(t, props.Undone(before, gone, true), "given back")
	assert.NoError(t, props.Undone(before, unmapped, true), "the memory went back, its range stays")
	assert.NoError(t, props.Undone(unmapped, before, true), "and came again")
	for _, after := range [][]alloc.Chunk{slack, pending, dead, gone, unmapped} {
		requireBroken(t, props.IUndo, props.Undone(before, after, false))
	}
	requireBroken(t, props.IUndo, props.Undone(before, pending, true))
	requireBroken(t, props.IUndo, props.Undone(pending, before, true))
	requireBroken(t, props.IUndo, props.Undone(before, dead, true))
}
