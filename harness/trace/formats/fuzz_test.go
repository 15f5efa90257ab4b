package formats_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/fileio"
)

// fuzz looks for panics, for errors that are no single line with the file's name, for traces that
// do not survive being written, and for readers that reserve more than the content can justify.
// What is compressed is left out: its content may be long.
func fuzz(t *testing.T, data []byte, name string) {
	t.Helper()
	if plain, err := fileio.NewReader(bytes.NewReader(data)); err != nil || plain.Form() != "" {
		return
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tr, err := formats.Read(bytes.NewReader(data), name, formats.Options{})
	runtime.ReadMemStats(&after)
	const once, each = 1 << 20, 1 << 10
	if took := after.TotalAlloc - before.TotalAlloc; took > once+each*uint64(len(data)) {
		t.Fatalf("%d bytes reserved for %d of input", took, len(data))
	}
	if err != nil {
		if msg := err.Error(); strings.Contains(msg, "\n") || !strings.HasPrefix(msg, name+":") {
			t.Fatalf("error %q", msg)
		}
		return
	}
	var text bytes.Buffer
	if err := trace.Write(&text, tr); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Read(&text, name, trace.Options{}); err != nil {
		t.Fatal(err)
	}
}
