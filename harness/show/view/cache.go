package view

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/trace"
)

// Cache stores replays on disk, each in a directory named by a hash of its inputs.
// The zero value stores nothing.
type Cache struct {
	Dir   string // created if missing; empty: no cache
	Build string // version of the program, part of the hash
	From  int    // shortest trace to store, in events
	Most  int64  // limit of all traces together, in bytes; least recently used traces are removed first
	// Explain fills in the report of memory by holder and the reports of failed runs, which are
	// stored too; may be nil. It must call step regularly and return its error.
	Explain func(t *page.Traced, p *replay.Prepared, step func(event int) error) error
}

// formatVersion is the version of the file format.
const formatVersion = 4

// unfinished is the prefix of directories being written.
const unfinished = ".new-"

// Open returns the replays of a trace, stored or new. [Replays.Close] removes the files of replays
// that are not stored.
func (c *Cache) Open(ctx context.Context, src trace.Source, wanted []RunSpec, at replay.FreeAt,
	p *Progress) (*Replays, error) {
	h := src.Head()
	if c.Dir == "" || h.Header.Hash == "" || h.Events < c.From {
		return c.replayTemporary(ctx, src, wanted, at, p)
	}
	key, err := c.key(h, wanted, at)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, key)
	r, err := load(ctx, dir, src, wanted, at)
	if err == nil {
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // on failure it is removed too early
		return r, nil
	}
	if err := os.RemoveAll(dir); err != nil { // it is missing or damaged
		return nil, err
	}
	return c.replay(ctx, dir, src, wanted, at, p)
}

// replay creates replays and stores them.
func (c *Cache) replay(
	ctx context.Context, dir string, src trace.Source, wanted []RunSpec, at replay.FreeAt, p *Progress,
) (*Replays, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	partial, err := os.MkdirTemp(c.Dir, unfinished)
	if err != nil {
		return nil, err
	}
	r, err := Replay(ctx, src, wanted, at, partial, p)
	if err == nil {
		err = r.explain(ctx, c, p)
	}
	if err == nil {
		err = r.save(partial)
	}
	if err != nil {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
		return nil, errors.Join(err, os.RemoveAll(partial))
	}
	// On some systems, files must be closed before their directory is renamed.
	if err := errors.Join(r.Close(), os.Rename(partial, dir)); err != nil {
		// Another program may have stored the same replays.
		r, errLoad := load(ctx, dir, src, wanted, at)
		if errLoad == nil {
			return r, os.RemoveAll(partial)
		}
		return nil, errors.Join(err, os.RemoveAll(partial))
	}
	if err := c.trim(filepath.Base(dir)); err != nil {
		return nil, err
	}
	return load(ctx, dir, src, wanted, at)
}

// replayTemporary creates replays whose files are removed on Close.
func (c *Cache) replayTemporary(ctx context.Context, src trace.Source, wanted []RunSpec, at replay.FreeAt,
	p *Progress) (*Replays, error) {
	dir, err := os.MkdirTemp("", "vramyard-view-")
	if err != nil {
		return nil, err
	}
	r, err := Replay(ctx, src, wanted, at, dir, p)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r.temporary = dir
	if err := r.explain(ctx, c, p); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// key returns the directory name of replays: a hash of all their inputs.
func (c *Cache) key(h trace.Head, wanted []RunSpec, at replay.FreeAt) (string, error) {
	type run struct{ Name, Config, Device any }
	runs := make([]run, len(wanted))
	for i, w := range wanted {
		runs[i] = run{w.Setup.Name, w.Setup.Config, w.Device}
	}
	text, err := json.Marshal([]any{formatVersion, c.Build, h.Header.Hash, h.Header.Format, h.Header.Meta, h.Events, runs,
		at, fineBuckets})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// cacheName matches directories of replays.
var cacheName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// trim removes the least recently used replays beyond the limit, except the given one, and
// unfinished ones older than a day. It ignores other names.
func (c *Cache) trim(except string) error {
	list, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	type kept struct {
		name string
		used time.Time
		size int64
	}
	var all []kept
	var total int64
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue // removed by another program
		}
		k := kept{e.Name(), info.ModTime(), sizeOf(filepath.Join(c.Dir, e.Name()))}
		switch {
		case strings.HasPrefix(k.name, unfinished) && time.Since(k.used) > 24*time.Hour:
			if err := os.RemoveAll(filepath.Join(c.Dir, k.name)); err != nil {
				return err
			}
		case cacheName.MatchString(k.name):
			all = append(all, k)
			total += k.size
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	for _, k := range all {
		if total <= c.Most {
			break
		}
		if k.name == except {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.Dir, k.name)); err != nil {
			return err
		}
		total -= k.size
	}
	return nil
}

// sizeOf returns the total size of the files in a directory.
func sizeOf(dir string) (n int64) {
	list, _ := os.ReadDir(dir) // unreadable entries count 0
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
