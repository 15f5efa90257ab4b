package async

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/kit/streampool"
)

// Allocator is a stream-ordered pool. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	front.View
	front  front.Front // does not count regions; the pool does
	pool   *streampool.Pool
	cfg    Config
	placer *forecast.Placer // made at the first use
}

var (
	_ alloc.Strategy       = (*Allocator)(nil)
	_ power.StreamRecorder = (*Allocator)(nil)
	_ power.Poller         = (*Allocator)(nil)
	_ power.Trimmer        = (*Allocator)(nil)
)

// New returns an allocator over src that holds nothing yet. It fails if c is invalid. It uses the
// streams and the timeline of src if src has them.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c, pool: streampool.New(src, c.pool())}
	a.View = a.front.Init(front.Limits{Most: streampool.MaxRequest}, func() (largest, bytes device.Size) {
		s := a.pool.Stats()
		return a.pool.LargestFree(), s.Free()
	})
	a.front.Stats.Limit, a.front.Stats.NextRegion = c.Limit, c.RegionBytes
	return a, nil
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Alloc implements [alloc.Allocator]. The package comment gives the cost.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	h, err := a.pool.Alloc(streampool.Request{Size: r.Size, Align: r.Align, Stream: r.Stream, Tag: r.Tag})
	a.front.Stats.Active = a.front.Stats.Allocated + a.pool.Pending()
	if err != nil {
		if errors.Is(err, streampool.ErrLimit) {
			err = regions.ErrLimit
		}
		return alloc.Block{}, a.front.OutOfMemory(&r, device.AlignUp(r.Size, streampool.Quantum), a.pool.Asked(), err)
	}
	b := a.pool.Region(h)
	a.front.Stats.Granted(r.Size, b.Size)
	return alloc.Block{Addr: b.Addr, Size: b.Size}, nil
}

// Free implements [alloc.Allocator]: the memory is reusable when the stream of the request and the
// recorded streams have finished the work queued now.
func (a *Allocator) Free(at device.Addr) error {
	h, err := a.find(at)
	if err != nil {
		return err
	}
	c := a.pool.Show(h)
	a.front.Stats.Freed(c.Requested, c.Size)
	a.pool.Free(h, c.Stream)
	a.front.Stats.Active = a.front.Stats.Allocated + a.pool.Pending()
	return nil
}

// find returns the live block that starts at an address.
func (a *Allocator) find(at device.Addr) (streampool.Handle, error) {
	if !a.front.Closed() {
		if h := a.pool.Find(at); h != streampool.None {
			return h, nil
		}
	}
	return streampool.None, a.front.NoBlock()
}

// RecordStream implements [power.StreamRecorder]. It costs O(streams recorded for the block).
func (a *Allocator) RecordStream(at device.Addr, s device.Stream) error {
	h, err := a.find(at)
	if err == nil {
		a.pool.Use(h, s)
	}
	return err
}

// Poll implements [power.Poller]. It releases empty regions as long as Config.ReleaseThreshold
// bytes stay. It queries the device once for each finished free and once for each stream.
func (a *Allocator) Poll() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	bytes, err := a.pool.Poll()
	a.front.Stats.Active = a.front.Stats.Allocated + a.pool.Pending()
	return bytes, err
}

// Trim implements [power.Trimmer]: it releases regions from the highest address down, regardless of
// Config.ReleaseThreshold. A release synchronizes the device.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	bytes, err := a.pool.Trim(0, true)
	a.front.Stats.Active = a.front.Stats.Allocated + a.pool.Pending()
	return bytes, err
}

func (a *Allocator) Close() error {
	a.front.Close()
	return a.pool.Close()
}
