package whatif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/whatif"
)

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return tr
}

// streamed is a source that is no trace in memory, in pieces of three events.
type streamed struct{ *trace.Trace }

func (s streamed) Pieces(yield func([]trace.Event) error) error {
	for events := s.Events; len(events) > 0; {
		n := min(3, len(events))
		if err := yield(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// story tells what happens in a source.
func story(t *testing.T, src trace.Source) string {
	t.Helper()
	var lines []string
	n := 0
	require.NoError(t, src.Pieces(func(events []trace.Event) error {
		n += len(events)
		for _, e := range events {
			lines = append(lines, e.Kind.String()+" "+e.Size.String())
		}
		return nil
	}))
	require.Equal(t, src.Head().Events, n, "the head counts the events")
	return strings.Join(lines, ", ")
}

func TestRefusalsBecomeRequests(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		died       bool
		refusals   int
	}{
		"none":                {"a 1 4KiB\nf 1\n", "alloc 4KiB, free 0B", false, 0},
		"the last one":        {"a 1 4KiB\nrefused 8KiB\n", "alloc 4KiB, alloc 8KiB", true, 1},
		"frees follow":        {"a 1 4KiB\nrefused 8KiB\nf 1\n", "alloc 4KiB, alloc 8KiB, free 0B", true, 1},
		"the program goes on": {"a 1 4KiB\nrefused 8KiB\nf 1\na 2 1KiB\n", "alloc 4KiB, alloc 8KiB, free 0B, free 0B, alloc 1KiB", false, 1},
		"survived, then died": {"a 1 4KiB\nrefused 8KiB\na 2 1KiB\nrefused 2KiB\n", "alloc 4KiB, alloc 8KiB, free 0B, alloc 1KiB, alloc 2KiB", true, 2},
	} {
		tr := read(t, c.text)
		for _, src := range []trace.Source{tr, streamed{tr}} {
			w, err := whatif.Want(src)
			require.NoError(t, err)
			require.Equal(t, c.want, story(t, w), name)
			require.Equal(t, c.died, w.Died, name)
			require.Equal(t, c.refusals, w.Refusals, name)
		}
	}
}

func TestRequestsOfRefusalsHaveNamesOfTheirOwn(t *testing.T) {
	tr := read(t, "a 7 4KiB\nrefused 8KiB\nrefused 16KiB\nf 7\na 7 1MiB\n")
	w, err := whatif.Want(tr)
	require.NoError(t, err)
	got := w.Source.(*trace.Trace)
	ids := map[uint64]bool{}
	for _, e := range got.Events[1:5] {
		require.NotEqual(t, uint64(7), e.ID)
		require.Less(t, int(e.Slot), got.Slots)
		ids[e.ID] = true
	}
	require.Len(t, ids, 2)
	require.Equal(t, []device.Size{4 * device.KiB, 8 * device.KiB, 16 * device.KiB, device.MiB}, w.Demand.Sizes)

	require.Equal(t, device.MiB, got.LowerBound())
}
