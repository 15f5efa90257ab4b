package trace_test

import (
	"math"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// streamed is a source that is no trace in memory, in pieces of three events.
type streamed struct{ *trace.Trace }

func (s streamed) Batches(yield func([]trace.Event) error) error {
	for events := s.Events; len(events) > 0; {
		n := min(3, len(events))
		if err := yield(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// kindsOf returns kinds and sizes of the events of a source.
func kindsOf(t *testing.T, src trace.Source) string {
	t.Helper()
	var words []string
	if err := src.Batches(func(events []trace.Event) error {
		for _, e := range events {
			words = append(words, e.Kind.String()+" "+e.Size.String())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := src.Head().Events; n != len(words) {
		t.Errorf("the head counts %d events, there are %d", n, len(words))
	}
	return strings.Join(words, ", ")
}

func TestRefusedRequestsAreRequested(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		died       bool
		count, at  int
		bound      device.Size
	}{
		"none":         {"a 1 4KiB\nf 1\n", "alloc 4KiB, free 0B", false, 0, 0, 4 * device.KiB},
		"the last one": {"a 1 4KiB\nrefused 8KiB\n", "alloc 4KiB, alloc 8KiB", true, 1, 1, 12 * device.KiB},
		"frees follow": {"a 1 4KiB\nrefused 8KiB\nf 1\n", "alloc 4KiB, alloc 8KiB, free 0B", true, 1, 1,
			12 * device.KiB},
		"the program goes on": {"a 1 4KiB\nrefused 8KiB\nf 1\na 2 1KiB\n", "alloc 4KiB, refused 8KiB, free 0B, alloc 1KiB",
			false, 1, 1, 12 * device.KiB},
		"survived, then died": {
			"a 1 4KiB\nrefused 8KiB\nrefused 6KiB\na 2 1KiB\nrefused 2KiB\n",
			"alloc 4KiB, refused 8KiB, refused 6KiB, alloc 1KiB, alloc 2KiB", true, 3, 4, 12 * device.KiB,
		},
	} {
		tr := read(t, c.text)
		for _, src := range []trace.Source{tr, streamed{tr}} {
			got, err := trace.Requested(src)
			if err != nil {
				t.Fatal(err)
			}
			if kinds := kindsOf(t, got); kinds != c.want {
				t.Errorf("%s: %s, want %s", name, kinds, c.want)
			}
			again, err := trace.Requested(got)
			if err != nil || kindsOf(t, again) != c.want {
				t.Errorf("%s: requested twice: %v, %v", name, again, err)
			}
			in, err := trace.Describe(src)
			if err != nil || in.Peak != c.bound {
				t.Errorf("%s: lower bound %v, want %v, error %v", name, in.Peak, c.bound, err)
			}
			if r := in.Refusals; (r != nil) != (c.count > 0) || r != nil &&
				(r.Count != c.count || r.LastAt != c.at || r.Died != c.died) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		asked, _ := trace.Requested(tr)
		if got := asked.(*trace.Trace).LowerBound(); got != c.bound || tr.LowerBound() != c.bound {
			t.Errorf("%s: lower bound %v, as recorded %v, want %v", name, got, tr.LowerBound(), c.bound)
		}
	}
}

func TestRefusedRequestsHaveIDsAndSlotsOfTheirOwn(t *testing.T) {
	tr := read(t, "a 7 4KiB\nrefused 8KiB\nrefused 16KiB\nf 7\na 7 1MiB\nrefused 1KiB\n")
	src, err := trace.Requested(tr)
	if err != nil {
		t.Fatal(err)
	}
	got := src.(*trace.Trace)
	ids, slots := map[uint64]bool{7: true}, map[uint32]bool{0: true}
	for _, i := range []int{1, 2, 5} {
		e := got.Events[i]
		if ids[e.ID] || slots[e.Slot] || int(e.Slot) >= got.Slots {
			t.Errorf("event %d has the id %d and the slot %d of %d", i, e.ID, e.Slot, got.Slots)
		}
		ids[e.ID], slots[e.Slot] = true, true
	}
	if tr.Events[1].ID != 0 || tr.Events[5].Kind != trace.Refused {
		t.Error("the trace itself has changed")
	}
	b := trace.NewBuilder(trace.Header{})
	if err := b.Alloc(math.MaxUint64, 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(trace.Event{Kind: trace.Refused, Size: 1, Time: trace.NoTime}); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Requested(b.Trace()); err == nil || err.Error() != "no ids are left for the refused requests" {
		t.Error(err)
	}
}
