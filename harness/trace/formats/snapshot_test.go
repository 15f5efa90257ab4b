package formats_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// twoDevices is a snapshot as JSON whose first device has segments alone. HISTORY is that of the
// first.
const twoDevices = `{"segments":[
{"device":0,"address":4194304,"total_size":2097152,"stream":0,"segment_type":"small","blocks":[
 {"address":4194304,"size":512,"requested_size":9,"state":"active_allocated"},{"address":4194816,"size":2096640,"requested_size":0,"state":"inactive"}]},
{"device":1,"address":4194304,"total_size":2097152,"stream":0,"segment_type":"small","blocks":[
 {"address":4194304,"size":512,"requested_size":8,"state":"active_allocated"},{"address":4194816,"size":2096640,"requested_size":0,"state":"inactive"}]}],
"device_traces":[[HISTORY],[{"action":"alloc","addr":4194304,"size":8,"stream":0}]]}`

func TestSnapshotGivesTheDeviceWithAHistory(t *testing.T) {
	text := strings.Replace(twoDevices, "HISTORY", "", 1)
	tr := read(t, text)
	require.Equal(t, "snapshot", tr.Header.Format)
	require.Equal(t, []trace.Pair{{Key: "part", Value: "cuda:1"}, {Key: "parts_left_out", Value: "cuda:0"}},
		tr.Header.Meta[:2])
	require.Contains(t, lines(t, tr), "\na 0 8\n")

	tr, err := formats.Read(strings.NewReader(text), "t", formats.Options{Part: "cuda:0"})
	require.NoError(t, err)
	require.Contains(t, lines(t, tr), "\nlive 0 9\n")
	_, err = formats.Read(strings.NewReader(text), "t", formats.Options{Part: "2"})
	require.EqualError(t, err, `t: has no part "2": want "cuda:0" (1 events), "cuda:1" (1 events)`)

	text = strings.Replace(twoDevices, "HISTORY", `{"action":"alloc","addr":4194304,"size":9,"stream":0}`, 1)
	_, err = formats.Read(strings.NewReader(text), "t", formats.Options{})
	require.EqualError(t, err, `t: holds several parts, name one of them: "cuda:0" (1 events), "cuda:1" (1 events)`)
	_, err = formats.Read(strings.NewReader(text), "t", formats.Options{Part: "cuda:1"})
	require.NoError(t, err)
}

func TestInvalidSnapshotsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"segments":[]}`:                  "has neither a history nor live blocks",
		"\x80\x04cos\nsystem\n(S'ls'\ntR.": "byte 2",
		"\x80\x04}":                        "byte 3",
		`{"segments":[{]}`:                 "byte 14",
	} {
		_, err := formats.Read(strings.NewReader(text), "t", formats.Options{})
		require.ErrorContains(t, err, want, "%q", text)
		require.True(t, strings.HasPrefix(err.Error(), "t: "), "%v", err)
	}
	_, _, err := formats.ReadSnapshot(strings.NewReader("a 1 5\n"), "t", formats.Options{})
	require.ErrorIs(t, err, formats.ErrNoSnapshot)
	require.EqualError(t, err, "t: is no snapshot of PyTorch")
}

// TestSnapshotAndTraceHaveOneHeader reads a file in both ways.
func TestSnapshotAndTraceHaveOneHeader(t *testing.T) {
	data, err := os.ReadFile("testdata/steps.snapshot")
	require.NoError(t, err)
	tr, err := formats.Read(bytes.NewReader(data), "x.pickle", formats.Options{})
	require.NoError(t, err)
	s, h, err := formats.ReadSnapshot(bytes.NewReader(data), "x.pickle", formats.Options{})
	require.NoError(t, err)
	require.Len(t, s.Devices, 1)
	require.Equal(t, torch.ActionFreeRequested, s.Devices[0].History.At(0).Action)
	require.Equal(t, "x", h.Name)
	h.Meta = tr.Header.Meta
	require.Equal(t, tr.Header, h)
}
