package trace

import "slices"

// Source is a trace that can be walked again and again without lying in memory as a whole. A
// [Trace] is one, in a single piece. A Source is safe for concurrent use.
//
// Only a Trace has BadFree and Fault events and keeps its slots apart. In any other Source a slot
// is given to another allocation once no event can name the one before, so that slots are as few
// as the allocations that live at once.
type Source interface {
	// Head returns what is known before the first event.
	Head() Head
	// Pieces hands on all events in order, some at a time. It ends early with the first error,
	// be it of reading or of yield. Once yield has returned, its piece may be overwritten.
	Pieces(yield func([]Event) error) error
	// TagOf returns the text of the tag of an event that was handed on.
	TagOf(*Event) string
}

// Head is what a [Source] knows of itself.
type Head struct {
	Header Header // where it comes from
	Events int    // how many there are
}

// Head implements [Source].
func (t *Trace) Head() Head { return Head{t.Header, len(t.Events)} }

// Pieces implements [Source].
func (t *Trace) Pieces(yield func([]Event) error) error { return yield(t.Events) }

// walk calls f for every event of a source with its number, until f fails.
func walk(s Source, f func(i int, e *Event) error) error {
	i := 0
	return s.Pieces(func(piece []Event) error {
		for k := range piece {
			if err := f(i, &piece[k]); err != nil {
				return err
			}
			i++
		}
		return nil
	})
}

// Watched returns a source that hands on the same events, and tells watch after each piece how many
// of how many were. Pieces are no longer than some ten thousand events.
func Watched(s Source, watch func(done, total int)) Source { return watchedSource{s, watch} }

// watchedSource is a source that somebody watches.
type watchedSource struct {
	Source
	watch func(done, total int)
}

// sight is how many events go by between two calls of a watcher.
const sight = 1 << 16

// Pieces implements [Source].
func (w watchedSource) Pieces(yield func([]Event) error) error {
	done, total := 0, w.Head().Events
	return w.Source.Pieces(func(piece []Event) error {
		for part := range slices.Chunk(piece, sight) {
			if err := yield(part); err != nil {
				return err
			}
			done += len(part)
			w.watch(done, total)
		}
		return nil
	})
}
