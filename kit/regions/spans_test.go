package regions

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

func TestBytesMatchTheTypeSizes(t *testing.T) {
	require.EqualValues(t, pageBytes, reflect.TypeFor[page]().Size())
	require.EqualValues(t, 32, reflect.TypeFor[Span]().Size())
}

const granularity = 2 * device.MiB

// drive is a memory over a device that fails now and then, beside what must be mapped.
type drive struct {
	t      *testing.T
	dev    *sim.Device
	faults *device.Faults
	stats  alloc.Stats
	mem    Memory
	mapped map[device.Addr]device.Size // pages by address
	rng    *rand.Rand
}

func newDrive(t *testing.T, seed uint64, failing float64) *drive {
	dev, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	require.NoError(t, err)
	faults, err := device.NewFaults(dev, device.FaultPlan{Seed: seed, Probability: failing})
	require.NoError(t, err)
	vm, ok := device.VirtualMemoryOf(faults)
	require.True(t, ok)
	d := &drive{t: t, dev: dev, faults: faults, mapped: map[device.Addr]device.Size{}, rng: rand.New(rand.NewPCG(seed, 7))}
	d.mem = NewMemory(vm, &d.stats)
	return d
}

// step does one random call.
func (d *drive) step() {
	m := &d.mem
	switch d.rng.IntN(8) {
	case 0:
		page := granularity << d.rng.IntN(3)
		_, _ = m.Open(page*device.Size(1+d.rng.IntN(8)), page, uint32(m.Len()+1))
		return
	case 1:
		_ = m.DropIdle()
		return
	}
	if m.Len() == 0 {
		return
	}
	i := d.rng.IntN(m.Len())
	s := m.At(i)
	at := s.Addr.Add(s.Page * device.Size(d.rng.IntN(int(s.Size/s.Page))))
	end := at.Add(s.Page)
	_, there := d.mapped[at]
	for end < s.End() && d.rng.IntN(2) == 0 {
		if _, next := d.mapped[end]; next != there {
			break
		}
		end = end.Add(s.Page)
	}
	page := s.Page
	switch {
	case there:
		if m.Clear(at, end) == nil {
			for a := at; a < end; a = a.Add(page) {
				delete(d.mapped, a)
			}
		}
	case d.rng.IntN(8) == 0 && !d.uses(s.Region):
		_ = m.Close(s.Addr)
	default:
		done, err := m.Fill(at, end)
		if err == nil {
			require.Equal(d.t, end, done)
		}
		for a := at; a < done; a = a.Add(page) {
			d.mapped[a] = page
		}
	}
}

// uses reports whether anything is mapped in a range.
func (d *drive) uses(r device.Region) bool {
	for a := range d.mapped {
		if r.Contains(a) {
			return true
		}
	}
	return false
}

// agree compares the memory with what must be mapped, and with the device.
func (d *drive) agree() {
	var bytes device.Size
	seen := map[device.Addr]device.Size{}
	for a, size := range d.mem.Pages {
		seen[a] = size
		bytes += size
		require.True(d.t, d.mem.Under(a).Contains(a))
		require.Equal(d.t, size, d.mem.Under(a).Page)
	}
	require.Equal(d.t, d.mapped, seen)
	require.Equal(d.t, bytes, d.stats.Reserved)
	u := d.dev.Usage()
	require.Equal(d.t, u.Held, d.mem.Held())
	require.Equal(d.t, u.Held, d.stats.Reserved+d.stats.Forgotten)
	require.Equal(d.t, u.Ranges, d.mem.Len())
	require.Equal(d.t, u.Handles, d.mem.Mapped()+len(d.mem.idle))
	require.True(d.t, slices.IsSortedFunc(d.mem.spans, func(a, b Span) int { return int(int64(a.Addr) - int64(b.Addr)) }))
}

func TestRefusalsOfTheDeviceLeakNothing(t *testing.T) {
	for seed := range uint64(60) {
		d := newDrive(t, seed, float64(seed%3)*0.15)
		for range 200 {
			d.step()
			d.agree()
		}
		d.faults.FailNext(0)
	}
}

func TestHandlesAreCreatedBeforeMapping(t *testing.T) {
	d := newDrive(t, 1, 0)
	r, err := d.mem.Open(96*device.MiB, granularity, 1)
	require.NoError(t, err)
	mapped, err := d.mem.Fill(r.Addr, r.End())
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Equal(t, r.Addr, mapped)
	require.Zero(t, d.dev.Usage().Calls[device.CallMap].Done)
	require.Equal(t, 32, d.mem.Idle(granularity))
	require.NoError(t, d.mem.DropIdle())
	require.Zero(t, d.dev.Usage().Held)
}
