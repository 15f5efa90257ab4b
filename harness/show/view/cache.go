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

// Cache keeps the replays of traces, those of each trace in a directory named by the hash of what
// they depend on. The zero value keeps nothing.
type Cache struct {
	Dir   string // made if there is none; empty for no cache
	Build string // names the program that replays: another one may come to other results
	From  int    // events of the shortest trace whose replays are kept
	Most  int64  // bytes of all traces; those that were used longest ago go first
	// Explain fills in who holds memory, and the reports of runs that ran out of memory; nil for
	// neither. They are kept with the replays. step is called now and then; its error must end it.
	Explain func(t *page.Traced, p *replay.Prepared, step func(event int) error) error
}

// form changes with the contents of the files.
const form = 4

// unfinished begins the name of a directory that is being written.
const unfinished = ".new-"

// Open returns the replays of a trace: those that are kept, or new ones. [Replays.Close] removes
// replays that are not kept.
func (c *Cache) Open(ctx context.Context, src trace.Source, wanted []Wanted, at replay.FreeAt,
	p *Progress) (*Replays, error) {
	h := src.Head()
	if c.Dir == "" || h.Header.Hash == "" || h.Events < c.From {
		return c.replayAway(ctx, src, wanted, at, p)
	}
	key, err := c.key(h, wanted, at)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, key)
	r, err := load(ctx, dir, src, wanted, at)
	if err == nil {
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // at worst it goes too early
		return r, nil
	}
	if err := os.RemoveAll(dir); err != nil { // there is none, or it is damaged
		return nil, err
	}
	return c.replay(ctx, dir, src, wanted, at, p)
}

// replay makes replays that are kept.
func (c *Cache) replay(
	ctx context.Context, dir string, src trace.Source, wanted []Wanted, at replay.FreeAt, p *Progress,
) (*Replays, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	away, err := os.MkdirTemp(c.Dir, unfinished)
	if err != nil {
		return nil, err
	}
	r, err := Replay(ctx, src, wanted, at, away, p)
	if err == nil {
		err = r.explain(ctx, c, p)
	}
	if err == nil {
		err = r.save(away)
	}
	if err != nil {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
		return nil, errors.Join(err, os.RemoveAll(away))
	}
	// Files must be closed before their directory gets its name, on some systems.
	if err := errors.Join(r.Close(), os.Rename(away, dir)); err != nil {
		// Another program may have been quicker.
		r, errLoad := load(ctx, dir, src, wanted, at)
		if errLoad == nil {
			return r, os.RemoveAll(away)
		}
		return nil, errors.Join(err, os.RemoveAll(away))
	}
	if err := c.trim(filepath.Base(dir)); err != nil {
		return nil, err
	}
	return load(ctx, dir, src, wanted, at)
}

// replayAway makes replays whose files are removed when they are closed.
func (c *Cache) replayAway(ctx context.Context, src trace.Source, wanted []Wanted, at replay.FreeAt,
	p *Progress) (*Replays, error) {
	dir, err := os.MkdirTemp("", "vramyard-view-")
	if err != nil {
		return nil, err
	}
	r, err := Replay(ctx, src, wanted, at, dir, p)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r.away = dir
	if err := r.explain(ctx, c, p); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// key returns the name of the directory of replays: the hash of all that they depend on.
func (c *Cache) key(h trace.Head, wanted []Wanted, at replay.FreeAt) (string, error) {
	type run struct{ Name, Config, Device any }
	runs := make([]run, len(wanted))
	for i, w := range wanted {
		runs[i] = run{w.Setup.Name, w.Setup.Config, w.Device}
	}
	text, err := json.Marshal([]any{form, c.Build, h.Header.Hash, h.Header.Format, h.Header.Meta, h.Events, runs, at,
		fineBuckets})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// keptName is the name of a directory of replays.
var keptName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// trim removes what was used longest ago until the others fit, but not the replays of a name, and
// what was left unfinished a day ago. It touches nothing without such a name.
func (c *Cache) trim(but string) error {
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
			continue // it has gone
		}
		k := kept{e.Name(), info.ModTime(), sizeOf(filepath.Join(c.Dir, e.Name()))}
		switch {
		case strings.HasPrefix(k.name, unfinished) && time.Since(k.used) > 24*time.Hour:
			if err := os.RemoveAll(filepath.Join(c.Dir, k.name)); err != nil {
				return err
			}
		case keptName.MatchString(k.name):
			all = append(all, k)
			total += k.size
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	for _, k := range all {
		if total <= c.Most {
			break
		}
		if k.name == but {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.Dir, k.name)); err != nil {
			return err
		}
		total -= k.size
	}
	return nil
}

// sizeOf returns the bytes of the files in a directory.
func sizeOf(dir string) (n int64) {
	list, _ := os.ReadDir(dir) // what cannot be read has no bytes
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
