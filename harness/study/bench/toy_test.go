package bench_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// toyConfig configures a toy.
type toyConfig struct {
	Page     device.Size `json:"page"`      // of every block
	Pages    int         `json:"pages"`     // that the region has
	Waste    bool        `json:"waste"`     // take an object from the Go heap for every block
	Quiet    bool        `json:"quiet"`     // do not tell the metadata
	KeepFrom int         `json:"keep_from"` // refuse to free pages from this one on; 0 for none
}

// ForCapacity implements [setting.CapacityConfig].
func (c toyConfig) ForCapacity(n device.Size) toyConfig {
	c.Pages = min(c.Pages, int(n/c.Page))
	return c
}

// Preallocates implements [setting.PreallocatingConfig].
func (c toyConfig) Preallocates() bool { return true }

// toy grants the lowest free page of its one region, so that anybody can tell where every
// block lies.
type toy struct {
	toyConfig
	src    device.Source
	region device.Region
	used   []bool
	wasted *[64]byte
}

func newToy(src device.Source, c toyConfig) (*toy, error) {
	r, err := src.Reserve(c.Page*device.Size(c.Pages), 0)
	if err != nil {
		return nil, err
	}
	return &toy{toyConfig: c, src: src, region: r, used: make([]bool, c.Pages)}, nil
}

func (t *toy) Alloc(r alloc.Request) (alloc.Block, error) {
	if r.Size > t.Page {
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	if t.Waste {
		t.wasted = new([64]byte)
	}
	for i, used := range t.used {
		if !used {
			t.used[i] = true
			return alloc.Block{Addr: t.region.Addr.Add(t.Page * device.Size(i)), Size: t.Page}, nil
		}
	}
	return alloc.Block{}, alloc.ErrOutOfMemory
}

var errKept = errors.New("toy: kept")

func (t *toy) Free(a device.Addr) error {
	i := int(a.Sub(t.region.Addr) / t.Page)
	if t.KeepFrom != 0 && i >= t.KeepFrom {
		return errKept
	}
	t.used[i] = false
	return nil
}

func (t *toy) Stats() alloc.Stats          { return alloc.Stats{} }
func (t *toy) Walk(func(alloc.Chunk) bool) {}
func (t *toy) Check() error                { return nil }
func (t *toy) Close() error                { return t.src.Release(t.region.Addr) }
func (t *toy) MetadataBytes() device.Size  { return device.Size(len(t.used)) }
func (t *toy) Has(p power.Power) bool      { return p == power.PowerMetered && !t.Quiet }

// setup returns a toy with the given configuration.
func setup(t *testing.T, config string) setting.Setup {
	t.Helper()
	s, err := setting.Catalogue{setting.SpecOf("toy", "pages of one size", newToy)}.Lookup("toy", json.RawMessage(config))
	require.NoError(t, err)
	return s
}

// pages returns a workload of blocks of 4 KiB.
func pages(t *testing.T, live, pairs int) workload.Workload {
	t.Helper()
	return settled(t, "uniform", func(p *workload.Params) {
		p.Live, p.Pairs, p.Least, p.Most = live, pairs, 4*device.KiB, 4*device.KiB
	})
}

// settled returns a workload of the named shape.
func settled(t *testing.T, name string, set func(*workload.Params)) workload.Workload {
	t.Helper()
	s, err := workload.Lookup(name)
	require.NoError(t, err)
	p := s.Default
	set(&p)
	w, err := s.New(p)
	require.NoError(t, err)
	return w
}
