package parquet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/harness/trace"
)

const (
	// groupRows is the number of rows in a group. Every group has its own dictionaries, which pay
	// off only in long groups; a writer holds a compressed group in memory.
	groupRows = 1 << 20
	// batchRows is the number of rows converted at once: their events take 512 KiB and stay in the
	// processor's caches.
	batchRows = 1 << 13
	// dictionaryBytes is the maximum size of a column's dictionary. Beyond it, for instance if
	// every allocation has its own stack as its tag, values are stored without a dictionary.
	dictionaryBytes = 32 << 20
)

// Write writes a trace. It walks it once, and before that up to the first request with an expected
// lifetime. Memory is bounded by a group of rows. It fails if the trace or w does, for an unknown
// kind of event, and for a text that is not UTF-8.
func Write(w io.Writer, t trace.Source) error {
	var origins, lifetimes bool
	err := t.Batches(func(events []trace.Event) error {
		origins = origins || slices.ContainsFunc(events, hasOrigin)
		if lifetimes = slices.ContainsFunc(events, hasLife); lifetimes {
			return errLife
		}
		return nil
	})
	withOrigin := func(r row, e *trace.Event) originRow { return originRow{r, e.Site, uint64(e.Thread)} }
	switch {
	case lifetimes:
		return write(w, t, func(r row, e *trace.Event) lifeRow { return lifeRow{withOrigin(r, e), lifeNames[e.Life]} })
	case err != nil:
		return err
	case origins:
		return write(w, t, withOrigin)
	}
	return write(w, t, func(r row, _ *trace.Event) row { return r })
}

// errLife stops the search for an expected lifetime.
var errLife = errors.New("a request has an expected lifetime")

// hasOrigin reports whether an event has a site or a thread.
func hasOrigin(e trace.Event) bool { return e.Site != 0 || e.Thread != 0 }

func hasLife(e trace.Event) bool { return e.Life != alloc.LifeUnknown }

func write[R any](w io.Writer, t trace.Source, complete func(row, *trace.Event) R) error {
	h := t.Head().Header
	options := []parquet.WriterOption{
		parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.DictionaryMaxBytes(dictionaryBytes), parquet.CreatedBy("vramyard", version, "parquet-go"),
	}
	for _, c := range [...]int{colKind, colHint, colTag} {
		// Minimum and maximum texts of pages are not used and take a quarter of the time.
		name := columnList[c].Name
		options = append(options, parquet.SkipPageBounds(name), parquet.SkipPageStatistics(name))
	}
	out := parquet.NewGenericWriter[R](w, options...)
	rows := make([]R, 0, batchRows)
	counts := map[string]int{}
	at := 0
	err := t.Batches(func(events []trace.Event) error {
		for i := range events {
			r, err := rowOf(t, &events[i])
			if err != nil {
				return fmt.Errorf("event %d: %w", at, err)
			}
			at++
			counts[r.Kind]++
			if rows = append(rows, complete(r, &events[i])); len(rows) == cap(rows) {
				if _, err := out.Write(rows); err != nil {
					return err
				}
				rows = rows[:0]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := out.Write(rows); err != nil {
		return err
	}
	if err := setMetadata(out, h, counts); err != nil {
		return err
	}
	return out.Close()
}

func rowOf(t trace.Source, e *trace.Event) (row, error) {
	name := kindName(e)
	if _, ok := kindNumbers[name]; !ok {
		return row{}, fmt.Errorf("unknown kind of event %d", e.Kind)
	}
	if int(e.Hint) >= len(hintNames) {
		return row{}, fmt.Errorf("unknown hint %d", e.Hint)
	}
	if int(e.Life) >= len(lifeNames) {
		return row{}, fmt.Errorf("unknown lifetime %d", e.Life)
	}
	tag := t.TagOf(e)
	if !utf8.ValidString(tag) {
		return row{}, fmt.Errorf("tag %+q: want UTF-8", tag)
	}
	return row{
		Kind: name, ID: e.ID, Size: uint64(e.Size), Stream: uint64(e.Stream), Align: uint64(e.Align),
		Hint: hintNames[e.Hint], Arg: e.Arg, Time: e.Time, Tag: tag,
	}, nil
}

// setMetadata writes the header and the counts of the trace.
func setMetadata(out interface{ SetKeyValueMetadata(key, value string) }, h trace.Header, counts map[string]int) error {
	pairs := []trace.Pair{} // an empty list is [], not null
	for _, p := range append([]trace.Pair{{Key: "name", Value: h.Name}}, h.Meta...) {
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			return fmt.Errorf("header %+q=%+q: want UTF-8", p.Key, p.Value)
		}
	}
	pairs = append(pairs, h.Meta...)
	header, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	events, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	out.SetKeyValueMetadata(keyVersion, version)
	out.SetKeyValueMetadata(keyName, h.Name)
	out.SetKeyValueMetadata(keyHeader, string(header))
	out.SetKeyValueMetadata(keyEvents, string(events))
	if h.Format != "" {
		out.SetKeyValueMetadata(keySourceFormat, h.Format)
	}
	if h.Hash != "" {
		out.SetKeyValueMetadata(keySourceHash, h.Hash)
	}
	return nil
}
