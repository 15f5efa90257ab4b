package formats_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// xspaceWith is a file with allocations, each with the bytes that it leaves available to the
// allocator, and events of other names.
func xspaceWith(available []uint64, events ...string) string {
	plane := append([]byte(nil), xspaceNames...)
	for i, name := range []string{"bytes_available", "bytes_allocated", "bytes_reserved"} {
		key := uint64(4 + i)
		plane = append(plane, field(5, varint(1, key), field(2, varint(1, key), field(2, []byte(name))))...)
	}
	for i, name := range events {
		plane = append(plane, field(4, varint(1, uint64(9+i)), field(2, field(2, []byte(name))))...)
	}
	for i, n := range available {
		live := uint64(i + 1)
		plane = append(plane, field(3, field(4, varint(1, 1), field(4, varint(1, 1), varint(3, live)),
			field(4, varint(1, 2), field(5, []byte("gpu"))), field(4, varint(1, 3), varint(3, 1)),
			field(4, varint(1, 4), varint(3, n)), field(4, varint(1, 5), varint(3, live)),
			field(4, varint(1, 6), varint(3, 7))))...)
	}
	return string(field(1, varint(1, 1), plane))
}

// TestXSpacesNameTheirFramework: a program of JAX may run operations of TensorFlow for its data.
func TestXSpacesNameTheirFramework(t *testing.T) {
	for want, events := range map[string][]string{
		"":           {"Iterator::Map"},
		"JAX":        {"EagerLocalExecute: Mul", "PjitFunction(step)", "FunctionRun"},
		"TensorFlow": {"TraceContext", "FunctionRun"},
	} {
		tr := read(t, xspaceWith([]uint64{5}, events...))
		require.Equal(t, "xspace", tr.Header.Format)
		got, ok := tr.Header.Get(trace.FrameworkKey)
		require.Equal(t, want, got)
		require.Equal(t, want != "", ok)
	}
}

// TestXSpacesHaveTheLimitOfTheAllocator adds available, allocated and reserved bytes. Different
// sums are no limit.
func TestXSpacesHaveTheLimitOfTheAllocator(t *testing.T) {
	for want, available := range map[string][]uint64{"100": {92, 91, 90}, "": {92, 93}} {
		tr, err := formats.Read(bytes.NewReader([]byte(xspaceWith(available))), "t", formats.Options{})
		require.NoError(t, err)
		got, _ := tr.Header.Get(trace.LimitKey)
		require.Equal(t, want, got)
	}
}
