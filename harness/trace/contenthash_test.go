package trace_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
)

func contentHash(t testing.TB, s trace.Source) string {
	t.Helper()
	hash, err := trace.ContentHash(s)
	require.NoError(t, err)
	require.Len(t, hash, 64)
	return hash
}

const hashed = "# origin=a test\nlive 7 2MiB stream=1\na 0 1000 align=512 tag=x\nmark \"step 1\"\n" +
	"use 0 1\nf 0\nf 7\na 0 3 tag=x\n"

// TestContentHashIsOfEvents compares one trace in two formats, and under two names, by file hashes
// that differ.
func TestContentHashIsOfEvents(t *testing.T) {
	text, err := trace.Read(strings.NewReader(hashed), "a.trace", trace.Options{})
	require.NoError(t, err)
	commented, err := trace.Read(strings.NewReader(hashed+"\n# the end\n"), "b.trace", trace.Options{})
	require.NoError(t, err)
	require.NotEqual(t, text.Header.Hash, commented.Header.Hash)
	require.Equal(t, contentHash(t, text), contentHash(t, commented))
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, text))
	columns, err := parquet.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), "c.parquet", budget.New(0))
	require.NoError(t, err)
	require.Equal(t, contentHash(t, text), contentHash(t, columns))
}

// TestContentHashHasEveryField changes each field of each event, the pairs and the texts.
func TestContentHashHasEveryField(t *testing.T) {
	original, err := trace.Read(strings.NewReader(hashed), "a.trace", trace.Options{})
	require.NoError(t, err)
	hash := contentHash(t, original)
	changed := func(change func(t *trace.Trace)) *trace.Trace {
		other := *original
		other.Events, other.Tags = slices.Clone(original.Events), slices.Clone(original.Tags)
		other.Header.Meta = slices.Clone(original.Header.Meta)
		change(&other)
		return &other
	}
	for i := range original.Events {
		for field := range reflect.TypeFor[trace.Event]().NumField() {
			name := reflect.TypeFor[trace.Event]().Field(field).Name
			if name == "Slot" || name == "Tag" { // numbers of the reader's own
				continue
			}
			other := changed(func(t *trace.Trace) {
				v := reflect.ValueOf(&t.Events[i]).Elem().Field(field)
				if v.CanInt() {
					v.SetInt(v.Int() + 1)
				} else {
					v.SetUint(v.Uint() + 1)
				}
			})
			require.NotEqual(t, hash, contentHash(t, other), "%s of event %d", name, i)
		}
	}
	for what, change := range map[string]func(*trace.Trace){
		"a tag":         func(t *trace.Trace) { t.Tags[1] = "y" },
		"no tag":        func(t *trace.Trace) { t.Events[1].Tag = 0 },
		"a pair":        func(t *trace.Trace) { t.Header.Meta[0].Value = "another test" },
		"no pair":       func(t *trace.Trace) { t.Header.Meta = nil },
		"no allocation": func(t *trace.Trace) { t.Events[1].Slot = trace.NoSlot },
		"one less":      func(t *trace.Trace) { t.Events = t.Events[1:] },
	} {
		require.NotEqual(t, hash, contentHash(t, changed(change)), what)
	}
}
