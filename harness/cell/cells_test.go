package cell_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell"
)

type (
	bytesHeld struct {
		Bytes uint64 `json:"bytes"`
		Name  string `json:"name"`
	}
	nanoseconds float64
)

func keyOf(strategy string) cell.Key {
	return cell.Key{Engine: 1, Subject: "ab", Strategy: strategy, Config: json.RawMessage(`{"z":1,"a":1e3}`), Semantics: "1"}
}

// computations counts the calls of [computes]' functions.
var computations int

func computes(r bytesHeld, ns nanoseconds) func() (cell.Result[bytesHeld, nanoseconds], error) {
	return func() (cell.Result[bytesHeld, nanoseconds], error) {
		computations++
		return cell.Result[bytesHeld, nanoseconds]{Exact: r, Measured: ns}, nil
	}
}

func TestKeysAreCanonical(t *testing.T) {
	text, err := keyOf("<bfc>").Canonical()
	require.NoError(t, err)
	require.Equal(t, `{"config":{"a":1e3,"z":1},"device":null,"engine":1,"learned_from_sha256":"","search":null,`+
		`"semantics":"1","strategy":"<bfc>","trace_sha256":"ab"}`, string(text))
	k := keyOf("<bfc>")
	k.Config = json.RawMessage(`{"a":1e3, "z":1}`)
	for _, other := range []cell.Key{keyOf("<bfc>"), k} {
		hash, err := other.Hash()
		require.NoError(t, err)
		require.Equal(t, "388a91d4ba0e30b9c7f5e69cb5573978772a01aefd1c0740027220e434a048f9", hash)
	}
}

func TestACellIsComputedOnce(t *testing.T) {
	dir, err := cell.OpenDir(filepath.Join(t.TempDir(), "a", "b"))
	require.NoError(t, err)
	ctx, ours, others := context.Background(), cell.Over(dir), cell.Over(dir)
	want, before := bytesHeld{7, "a<b"}, computations
	for i, c := range []*cell.Cells{ours, ours, others} {
		r, err := cell.Recall(ctx, c, keyOf("bfc"), computes(want, nanoseconds(i+1)))
		require.NoError(t, err)
		require.Equal(t, want, r.Exact)
		require.InDelta(t, 1, float64(r.Measured), 0, "the first worker measured")
	}
	require.Equal(t, 1, computations-before)

	failed := errors.New("no disk")
	fails := func() (r cell.Result[bytesHeld, nanoseconds], err error) { return r, failed }
	_, err = cell.Recall(ctx, ours, keyOf("tlsf"), fails)
	require.Equal(t, failed, err)
	r, err := cell.Recall(ctx, ours, keyOf("tlsf"), computes(want, 5))
	require.NoError(t, err, "an error is not stored")
	require.InDelta(t, 5, float64(r.Measured), 0)
	names, err := dir.Names(ctx, "cells/")
	require.NoError(t, err)
	require.Len(t, names, 2)
}

func TestADamagedCellIsComputedAgain(t *testing.T) {
	dir, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	ctx, c, before := context.Background(), cell.Over(dir), computations
	_, err = cell.Recall(ctx, c, keyOf("bfc"), computes(bytesHeld{Bytes: 1}, 1))
	require.NoError(t, err)
	names, err := dir.Names(ctx, "")
	require.NoError(t, err)
	file := filepath.Join(dir.String(), names[0])
	require.NoError(t, os.Truncate(file, 20))
	_, err = cell.Recall(ctx, c, keyOf("bfc"), computes(bytesHeld{Bytes: 1}, 1))
	require.NoError(t, err)
	require.Equal(t, 2, computations-before)
	_, err = cell.Recall(ctx, c, keyOf("bfc"), computes(bytesHeld{Bytes: 1}, 1))
	require.NoError(t, err)
	require.Equal(t, 2, computations-before, "the damaged object was replaced")

	require.NoError(t, os.WriteFile(file, []byte(`{"schema":"vramyard-cell/9"}`), 0o600))
	_, err = cell.Recall(ctx, c, keyOf("bfc"), computes(bytesHeld{}, 1))
	require.ErrorContains(t, err, `schema "vramyard-cell/9": want "vramyard-cell/1"`)
}

func TestWorkersThatDisagreeAreReported(t *testing.T) {
	dir, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	ctx, c := context.Background(), cell.Over(dir)
	meanwhile := func(r bytesHeld) func() (cell.Result[bytesHeld, nanoseconds], error) {
		return func() (cell.Result[bytesHeld, nanoseconds], error) {
			_, err := cell.Recall(ctx, cell.Over(dir), keyOf("bfc"), computes(bytesHeld{Bytes: 4096}, 1))
			require.NoError(t, err)
			return cell.Result[bytesHeld, nanoseconds]{Exact: r, Measured: 2}, nil
		}
	}
	_, err = cell.Recall(ctx, c, keyOf("bfc"), meanwhile(bytesHeld{Bytes: 4097}))
	different, ok := errors.AsType[*cell.Disagreement](err)
	require.True(t, ok, "%v", err)
	require.JSONEq(t, `{"bytes":4097,"name":""}`, string(different.Ours))
	require.ErrorContains(t, err, `...{"bytes":4097,"name":""}... and ...{"bytes":4096,"name":""}...`)
	kept, err := dir.Names(ctx, "conflicts/"+different.Cell)
	require.NoError(t, err)
	require.Len(t, kept, 1)

	require.NoError(t, os.RemoveAll(filepath.Join(dir.String(), "cells")))
	_, err = cell.Recall(ctx, c, keyOf("bfc"), meanwhile(bytesHeld{Bytes: 4096}))
	require.NoError(t, err, "other times are no disagreement")
}

func TestFilesAreNoFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := cell.OpenDir(filepath.Join(file, "store"))
	require.EqualError(t, err, "store: mkdir "+file+": not a directory")
}

func TestLockedFoldersAreErrors(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("needs a user other than root, who may write everywhere")
	}
	locked := filepath.Join(t.TempDir(), "locked")
	require.NoError(t, os.Mkdir(locked, 0o500))
	_, err := cell.OpenDir(locked)
	require.ErrorContains(t, err, "permission denied")
}

func TestNoTemporaryFilesAreLeft(t *testing.T) {
	dir, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, dir.Put(t.Context(), "cells/ab/1.json", []byte("one")))
	require.Equal(t, cell.ErrTaken, dir.Put(t.Context(), "cells/ab/1.json", []byte("two")))
	for folder, want := range map[string]int{"": 1, "cells/ab": 1} {
		files, err := os.ReadDir(filepath.Join(dir.String(), folder))
		require.NoError(t, err)
		require.Len(t, files, want, folder)
	}
}

func TestAResultIsStoredAfterTheEndOfItsContext(t *testing.T) {
	dir, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = cell.Recall(ctx, cell.Over(dir), keyOf("bfc"), func() (r cell.Result[bytesHeld, nanoseconds], err error) {
		cancel()
		return r, nil
	})
	require.NoError(t, err)
	names, err := dir.Names(t.Context(), "cells/")
	require.NoError(t, err)
	require.Len(t, names, 1)
}
