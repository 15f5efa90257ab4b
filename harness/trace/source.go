package trace

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
