package verify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
)

// histories is the variable that names a folder of recordings: pairs of X.csv.gz and X.addr.gz.
const histories = "VRAMYARD_HISTORIES"

// open reads a history from two files.
func open(t *testing.T, requests, addresses string) *verify.History {
	t.Helper()
	tr, err := trace.Open(requests, trace.Options{})
	require.NoError(t, err)
	lines, err := trace.OpenLines(addresses, nil)
	require.NoError(t, err)
	defer lines.Close()
	h, err := verify.Read(tr, lines)
	require.NoError(t, err)
	return h
}

// TestModelPredictsRecordings goes through the recordings of a folder that is not ours to ship.
func TestModelPredictsRecordings(t *testing.T) {
	dir := os.Getenv(histories)
	if dir == "" {
		t.Skip(histories + " names no folder of recordings")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.addr.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(file, ".addr.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			res, err := verify.Run(open(t, name+".csv.gz", file), &plain)
			require.NoError(t, err)
			t.Logf("%d of %d predicted, %d of %d segments; peak reserved %d, recorded %d",
				res.Predicted, res.Allocs, res.PredictedSegments, res.Segments, res.Reserved, res.Recorded)
			require.True(t, res.All(), "%v", res.First)
			require.Equal(t, res.Recorded, res.Reserved)
		})
	}
}
