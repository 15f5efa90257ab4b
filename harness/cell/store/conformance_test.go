package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/store"
)

// server is the environment variable with the location of a bucket for tests.
const server = "VRAMYARD_S3"

// eachStore runs a test on an empty store of each kind. It receives the location too.
func eachStore(t *testing.T, test func(t *testing.T, s cell.Store, location string)) {
	t.Helper()
	t.Run("Folder", func(t *testing.T) {
		location := t.TempDir()
		test(t, open(t, location), location)
	})
	t.Run("S3", func(t *testing.T) {
		location := os.Getenv(server)
		if location == "" {
			t.Skip("needs a bucket in " + server + ": bash .ci/s3 starts a server with one")
		}
		u, err := url.Parse(location)
		require.NoError(t, err)
		u.Path += "/" + strings.ToLower(t.Name()+"-"+rand.Text())
		test(t, open(t, u.String()), u.String())
	})
}

func open(t *testing.T, location string) cell.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	require.NoError(t, err)
	require.Equal(t, location, s.String())
	t.Cleanup(func() {
		names, err := s.Names(context.Background(), "")
		require.NoError(t, err)
		inParallel(t, names, func(name string) error { return s.Remove(context.Background(), name) })
	})
	return s
}

// inParallel calls f for each name, eight at once.
func inParallel(t *testing.T, names []string, f func(name string) error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, 8)
	for w := range errs {
		all.Go(func() {
			for i := w; i < len(names) && errs[w] == nil; i += len(errs) {
				errs[w] = f(names[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestStoresKeepTheFirst(t *testing.T) {
	eachStore(t, func(t *testing.T, s cell.Store, _ string) {
		ctx, name := t.Context(), "cells/ab/1.json"
		_, err := s.Get(ctx, name)
		require.Equal(t, cell.ErrMissing, err)
		require.NoError(t, s.Put(ctx, name, []byte("one")))
		require.Equal(t, cell.ErrTaken, s.Put(ctx, name, []byte("two")))
		body, err := s.Get(ctx, name)
		require.NoError(t, err)
		require.Equal(t, "one", string(body))
		require.NoError(t, s.Remove(ctx, name))
		require.NoError(t, s.Remove(ctx, name))
		_, err = s.Get(ctx, name)
		require.Equal(t, cell.ErrMissing, err)
		require.NoError(t, s.Put(ctx, name, []byte("two")))
		names, err := s.Names(ctx, "")
		require.NoError(t, err)
		require.Equal(t, []string{name}, names, "no temporary objects are left")
	})
}

func TestStoresKeepEveryByte(t *testing.T) {
	eachStore(t, func(t *testing.T, s cell.Store, _ string) {
		long := make([]byte, 1<<20)
		for i := range long {
			long[i] = byte(i * i >> 7)
		}
		for name, body := range map[string][]byte{"empty": {}, "long": long} {
			require.NoError(t, s.Put(t.Context(), name, body))
			require.Equal(t, cell.ErrTaken, s.Put(t.Context(), name, body))
			read, err := s.Get(t.Context(), name)
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, read), "%s: %d bytes", name, len(read))
		}
	})
}

// contested are the names that all writers of the next test want.
var contested = slices.Collect(func(yield func(string) bool) {
	for i := 0; i < 20 && yield(fmt.Sprintf("contested/%02d", i)); i++ {
	}
})

// TestOneOfManyWritersSucceeds has four processes of eight goroutines each: this test calls itself
// with the location in the environment.
func TestOneOfManyWritersSucceeds(t *testing.T) {
	const writers = "VRAMYARD_TEST_WRITERS"
	if location := os.Getenv(writers); location != "" {
		write(t, location)
		return
	}
	eachStore(t, func(t *testing.T, s cell.Store, location string) {
		out := make([][]byte, 4)
		errs := make([]error, len(out))
		var all sync.WaitGroup
		for i := range out {
			all.Go(func() {
				c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneOfManyWritersSucceeds$")
				c.Env = append(os.Environ(), writers+"="+location)
				out[i], errs[i] = c.CombinedOutput()
			})
		}
		all.Wait()
		won := map[string]string{} // writers by name
		for i := range out {
			require.NoError(t, errs[i], "%s", out[i])
			for line := range strings.Lines(string(out[i])) {
				if words := strings.Fields(line); len(words) == 3 && words[0] == "wrote" {
					require.Empty(t, won[words[1]], "%s has two writers", words[1])
					won[words[1]] = words[2]
				}
			}
		}
		require.Len(t, won, len(contested))
		for name, writer := range won {
			body, err := s.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, writer, string(body))
		}
	})
}

// write puts every contested object from eight goroutines and prints who wrote which.
func write(t *testing.T, location string) {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	require.NoError(t, err)
	var writers []string
	for w := range 8 {
		writers = append(writers, fmt.Sprintf("%d.%d", os.Getpid(), w))
	}
	inParallel(t, writers, func(writer string) error {
		for _, name := range contested {
			err := s.Put(t.Context(), name, []byte(writer))
			if err == nil {
				fmt.Println("wrote", name, writer)
			} else if !errors.Is(err, cell.ErrTaken) {
				return err
			}
		}
		return nil
	})
}

func TestNamesAreSortedAndComplete(t *testing.T) {
	eachStore(t, func(t *testing.T, s cell.Store, _ string) {
		deep := strings.Repeat("deep/", 30) + "object"
		names := []string{deep, "a.b", "a-b/c", "a/c", "a0", "cells-x"}
		for i := range 1100 { // S3 lists a thousand at once
			names = append(names, fmt.Sprintf("cells/%02x/%d.json", i%256, i))
		}
		inParallel(t, names, func(name string) error { return s.Put(t.Context(), name, nil) })
		slices.Sort(names)
		for _, prefix := range []string{"", "cells/", "cells/a", "deep/deep", "a", "none"} {
			var want []string
			for _, name := range names {
				if strings.HasPrefix(name, prefix) {
					want = append(want, name)
				}
			}
			got, err := s.Names(t.Context(), prefix)
			require.NoError(t, err)
			require.Equal(t, want, got, "prefix %q", prefix)
		}
	})
}

func TestNothingHappensAfterTheEndOfAContext(t *testing.T) {
	eachStore(t, func(t *testing.T, s cell.Store, _ string) {
		require.NoError(t, s.Put(t.Context(), "old", nil))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Get(ctx, "old")
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Names(ctx, "")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, s.Put(ctx, "new", nil), context.Canceled)
		require.ErrorIs(t, s.Remove(ctx, "old"), context.Canceled)
		names, err := s.Names(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []string{"old"}, names)
	})
}
