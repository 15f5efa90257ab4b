package formats_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/harness/formats"
	"github.com/vramyard/vramyard/harness/trace"
)

// fuzz looks for panics, for errors that are no single line with the file's name, and for
// traces that do not survive being written.
func fuzz(t *testing.T, data []byte, name string) {
	t.Helper()
	tr, err := formats.Read(bytes.NewReader(data), name, formats.Options{MaxEvents: 1 << 16})
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
