package trace

import (
	"fmt"
	"slices"
)

// Source is a trace that can be walked repeatedly without loading it into memory. A [Trace] is a
// Source with a single batch. A Source is safe for concurrent use.
//
// Only a Trace has BadFree and Fault events and a distinct slot for each allocation. Any other
// Source reuses a slot once no event can refer to its allocation, so the number of slots is the
// peak of live allocations.
type Source interface {
	// Head returns the data known before the first event.
	Head() Head
	// Batches passes all events to yield in order, some at a time. It stops at the first error of
	// reading or of yield. A batch is valid until yield returns.
	Batches(yield func([]Event) error) error
	// TagOf returns the text of an event's tag. The event must come from this source.
	TagOf(*Event) string
}

// Head describes a [Source].
type Head struct {
	Header Header // where it comes from
	Events int    // number of events

	places *places
}

// places has the lines of a text file for the errors of its users.
type places struct {
	file   string
	events map[int]int // by the index of an event whose text a replay may reject, or of every event
	pairs  []int       // of the pairs of the header
}

// Place returns the place of an event for messages: "file:line" of a change of the settings in a
// text file, and of any event with Options.Lines, otherwise "event 17".
func (h Head) Place(event int) string {
	if h.places != nil {
		if line, ok := h.places.events[event]; ok {
			return fmt.Sprintf("%s:%d", h.places.file, line)
		}
	}
	return fmt.Sprintf("event %d", event)
}

// PairPlace returns the place of a pair of the header for messages: "file:line", or path if the
// line is unknown.
func (h Head) PairPlace(pair int, path string) string {
	if h.places == nil || pair >= len(h.places.pairs) {
		return path
	}
	return fmt.Sprintf("%s:%d", h.places.file, h.places.pairs[pair])
}

func (t *Trace) Head() Head { return Head{t.Header, len(t.Events), t.places} }

func (t *Trace) Batches(yield func([]Event) error) error { return yield(t.Events) }

// walk calls f for every event of a source with its number, until f fails.
func walk(s Source, f func(i int, e *Event) error) error {
	i := 0
	return s.Batches(func(batch []Event) error {
		for k := range batch {
			if err := f(i, &batch[k]); err != nil {
				return err
			}
			i++
		}
		return nil
	})
}

// Watched returns a source with the same events that reports progress to watch after each batch. A
// batch has at most 65,536 events.
func Watched(s Source, watch func(done, total int)) Source { return watchedSource{s, watch} }

// watchedSource is a source that reports progress.
type watchedSource struct {
	Source
	watch func(done, total int)
}

// progressStep is the number of events between two progress reports.
const progressStep = 1 << 16

func (w watchedSource) Batches(yield func([]Event) error) error {
	done, total := 0, w.Head().Events
	return w.Source.Batches(func(batch []Event) error {
		for part := range slices.Chunk(batch, progressStep) {
			if err := yield(part); err != nil {
				return err
			}
			done += len(part)
			w.watch(done, total)
		}
		return nil
	})
}
