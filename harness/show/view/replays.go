package view

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/trace"
)

// fineBuckets bounds the buckets of stored curves. A run needs 18 MiB for that many, which resolve
// single events in a window of 1/32 of a trace of four million events.
const fineBuckets = 1 << 17

// RunSpec is a strategy to replay a trace through.
type RunSpec struct {
	Setup  setting.Setup // the strategy
	Device sim.Config    // its device
	Color  int           // palette index
}

// Replays is a trace with its replays, of which any part can be requested. It is safe for
// concurrent use.
type Replays struct {
	Trace *page.Trace // with fine buckets
	Runs  []Run       // in the order of the wanted strategies
	// Top is the report of memory by holder, stored with the replays; nil: not computed.
	Top *top.Report
	// Stacks holds the allocation stacks, set by the caller; nil: unknown.
	Stacks page.Stacks

	temporary string // directory to remove on Close
	src       trace.Source
	freeAt    replay.FreeAt
	prepared  func() (*replay.Prepared, error)
	states    states
	walkers   walkers
}

// Run is one strategy on the trace.
type Run struct {
	RunSpec

	Picture *page.Picture   // with fine buckets
	Report  json.RawMessage // of the first failure; may be nil
	blocks  *page.BlockFile
	file    *os.File
}

// Close ends paused replays, closes the files, and removes replays that are not stored.
func (r *Replays) Close() error {
	var errs []error
	r.walkers.close()
	for i := range r.Runs {
		if f := r.Runs[i].file; f != nil {
			errs = append(errs, f.Close())
		}
	}
	if r.temporary != "" {
		errs = append(errs, os.RemoveAll(r.temporary))
	}
	return errors.Join(errs...)
}

// overviewName is the file of everything except blocks.
const overviewName = "overview"

func blocksName(run int) string { return fmt.Sprintf("blocks-%d", run) }

// overview is the content of that file.
type overview struct {
	Trace page.Trace
	Runs  []page.Picture
	// Reports are by run.
	Reports [][]byte
	Top     *top.Report
}

// Replay replays a trace through the wanted strategies and writes the blocks into a directory.
func Replay(ctx context.Context, src trace.Source, wanted []RunSpec, at replay.FreeAt, dir string,
	p *Progress) (*Replays, error) {
	o := page.Budget(len(wanted))
	o.Buckets, o.FreeAt, o.Latency = fineBuckets, at, true
	events := src.Head().Events
	step := func(phase string) func(int) error {
		return func(event int) error {
			p.Set(phase, event, events)
			return ctx.Err()
		}
	}
	o.Step = step("reading the trace")
	r := newReplays(ctx, src, wanted, at)
	prepared, err := r.prepared()
	if err != nil {
		return nil, err
	}
	t, err := page.NewTrace(prepared.Source(), o)
	if err != nil {
		return nil, err
	}
	r.Trace = t
	for i := range r.Runs {
		run := &r.Runs[i]
		o.Step = step(fmt.Sprintf("replaying through %s", run.Setup.Name))
		if err := run.replay(t, prepared, o, filepath.Join(dir, blocksName(i))); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if err := run.measure(prepared, at, step(fmt.Sprintf("measuring %s", run.Setup.Name))); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// explain calls the cache's Explain.
func (r *Replays) explain(ctx context.Context, c *Cache, p *Progress) error {
	if c.Explain == nil {
		return nil
	}
	t, err := r.Traced()
	if err != nil {
		return err
	}
	prepared, err := r.prepared()
	if err != nil {
		return err
	}
	step := func(event int) error {
		p.Set("explaining out-of-memory failures", event, r.Trace.Head.Events)
		return ctx.Err()
	}
	if err := c.Explain(&t, prepared, step); err != nil {
		return err
	}
	r.Top = t.Top
	for i := range t.Runs {
		if t.Runs[i].Report == nil {
			continue
		}
		if r.Runs[i].Report, err = json.Marshal(t.Runs[i].Report); err != nil {
			return err
		}
	}
	return nil
}

// newReplays returns replays without pictures. They become invalid when ctx ends.
func newReplays(ctx context.Context, src trace.Source, wanted []RunSpec, at replay.FreeAt) *Replays {
	r := &Replays{src: src, freeAt: at, Runs: make([]Run, len(wanted))}
	r.prepared = sync.OnceValues(func() (*replay.Prepared, error) { return replay.Prepare(ctx, src) })
	for i := range wanted {
		r.Runs[i].RunSpec = wanted[i]
	}
	return r
}

func (r *Run) device() (device.Device, error) { return sim.New(r.Device) }

// replay replays the run and writes the blocks to a file.
func (r *Run) replay(t *page.Trace, p *replay.Prepared, o page.Options, path string) error {
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := page.NewWriter(out, t.Head.Events)
	o.Each = w.Add
	r.Picture, err = t.Draw(p, r.Setup, r.device, o)
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, out.Close())
	}
	return r.open(out)
}

// measure replays again, without observers, to compute the figures. An error of watch ends it.
func (r *Run) measure(p *replay.Prepared, at replay.FreeAt, watch func(events int) error) error {
	dev, err := r.device()
	if err != nil {
		return err
	}
	r.Picture.Result, err = p.Run(r.Setup, dev, replay.Options{Figures: true, FreeAt: at, Watch: watch})
	return err
}

func (r *Run) open(f *os.File) error {
	info, err := f.Stat()
	if err == nil {
		r.blocks, err = page.OpenBlocks(f, info.Size())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.file = f
	return nil
}

// save writes everything except blocks into a directory.
func (r *Replays) save(dir string) error {
	o := overview{Trace: *r.Trace, Top: r.Top}
	for i := range r.Runs {
		o.Runs = append(o.Runs, *r.Runs[i].Picture)
		o.Reports = append(o.Reports, r.Runs[i].Report)
	}
	f, err := os.OpenFile(filepath.Join(dir, overviewName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<18)
	return errors.Join(gob.NewEncoder(b).Encode(&o), b.Flush(), f.Close())
}

// load opens the replays in a directory.
func load(ctx context.Context, dir string, src trace.Source, wanted []RunSpec, at replay.FreeAt) (*Replays, error) {
	f, err := os.Open(filepath.Join(dir, overviewName))
	if err != nil {
		return nil, err
	}
	var o overview
	err = gob.NewDecoder(bufio.NewReaderSize(f, 1<<18)).Decode(&o)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(o.Runs) != len(wanted) || len(o.Reports) != len(wanted) || o.Trace.Head.Events != src.Head().Events {
		return nil, fs.ErrInvalid
	}
	o.Trace.Head = src.Head() // the name may differ
	r := newReplays(ctx, src, wanted, at)
	r.Trace, r.Top = o.Trace.Reopen(src), o.Top
	for i := range r.Runs {
		r.Runs[i].Picture = &o.Runs[i]
		if len(o.Reports[i]) > 0 {
			r.Runs[i].Report = o.Reports[i]
		}
		f, err := os.Open(filepath.Join(dir, blocksName(i)))
		if err == nil {
			err = r.Runs[i].open(f)
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Traced returns the part shown in a page.
func (r *Replays) Traced() (page.Traced, error) {
	coarse := r.Trace.Grid.Coarse(page.Budget(1).Buckets)
	t := page.Traced{Picture: r.Trace.Pick(coarse), Stacks: r.Stacks, Top: r.Top}
	for i := range r.Runs {
		run := &r.Runs[i]
		config, err := json.Marshal(run.Setup.Config)
		if err != nil {
			return page.Traced{}, err
		}
		figures := *run.Picture.Result
		figures.Series = nil // the page has its own
		var why any
		if run.Report != nil {
			why = run.Report
		}
		t.Runs = append(t.Runs, page.Run{
			Report:   why,
			Strategy: run.Setup.Name, Config: config, Device: run.Device, Color: run.Color, Figures: &figures,
			Picture: run.Picture.Pick(coarse),
		})
	}
	return t, nil
}
