package index_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// ranges is an atlas beside a list of what is in it.
type ranges struct {
	index.Atlas
	have map[uint32]device.Region
	next uint32
}

// newRanges returns an atlas without a range.
func newRanges() *ranges {
	r := &ranges{have: map[uint32]device.Region{}}
	r.Atlas = index.NewAtlas(func(label uint32) (device.Addr, device.Size) {
		return r.have[label].Addr, r.have[label].Size
	})
	return r
}

// add enters a range unless it meets another, and returns its label, 0 if it does.
func (r *ranges) add(a device.Addr, n device.Size) uint32 {
	for _, h := range r.have {
		if a <= h.Addr.Add(h.Size-1) && h.Addr <= a.Add(n-1) {
			return 0
		}
	}
	r.next++
	r.have[r.next] = device.Region{Addr: a, Size: n}
	r.Set(a, n, r.next)
	return r.next
}

// remove removes a range.
func (r *ranges) remove(label uint32) {
	h := r.have[label]
	r.Clear(h.Addr, h.Size, label)
	delete(r.have, label)
}

// verify compares every end of every range, and all entries, with the list.
func (r *ranges) verify() error {
	left := map[uint32]device.Size{}
	for label, h := range r.have {
		left[label] = h.Size
		for _, a := range []device.Addr{h.Addr, h.Addr.Add(h.Size / 2), h.Addr.Add(h.Size - 1)} {
			if got := r.Get(a); got != label {
				return fmt.Errorf("%v is in %d, got %d", a, label, got)
			}
		}
	}
	for e := range r.All {
		h, ok := r.have[e.Label]
		from, to := max(e.Addr, h.Addr), min(e.Addr.Add(e.Size-1), h.Addr.Add(h.Size-1))
		if !ok || from > to {
			return fmt.Errorf("an entry of %d bytes at %v leads to %d", e.Size, e.Addr, e.Label)
		}
		left[e.Label] -= to.Sub(from) + 1
	}
	for label, n := range left {
		if n != 0 {
			return fmt.Errorf("%d bytes of %d are in no entry", n, label)
		}
	}
	return nil
}

func TestEmptyAtlasKnowsNothing(t *testing.T) {
	r := newRanges()
	for _, a := range []device.Addr{0, 1, 1 << 20, 0x7f0000000000, ^device.Addr(0)} {
		require.Zero(t, r.Get(a))
	}
	require.NoError(t, r.verify())
}

// TestRangesOfAllSizes has neighbours from one byte to many areas, in one area and across.
func TestRangesOfAllSizes(t *testing.T) {
	for _, base := range []device.Addr{1, 0x7f0000000000, 1<<63 - 7, ^device.Addr(0) - 1<<30} {
		r := newRanges()
		at := base
		for log := range 27 {
			for _, n := range []device.Size{1 << log, 1<<log + 1, 1} {
				require.NotZero(t, r.add(at, n))
				at = at.Add(n + device.Size(log%2))
			}
		}
		require.NoError(t, r.verify())
		for label := uint32(1); label <= r.next; label += 2 {
			r.remove(label)
			require.NoError(t, r.verify())
		}
	}
}

func TestLastByteOfAll(t *testing.T) {
	r := newRanges()
	require.NotZero(t, r.add(^device.Addr(0), 1))
	require.NotZero(t, r.add(^device.Addr(0)-4096, 4096))
	require.NoError(t, r.verify())
}

// TestRangesFarApart has a window for each cluster, which grows and meets others; the largest is
// found first, whichever that is.
func TestRangesFarApart(t *testing.T) {
	r := newRanges()
	clusters := []device.Addr{1 << 50, 1 << 20, 1 << 60, 1<<50 + 1<<36, 1<<50 - 1<<33}
	for i := range 3000 {
		at := clusters[i%5].Add(device.Size(i) << 20)
		if i%7 == 0 {
			at = clusters[i%5] - device.Addr(i)<<20
		}
		if at < 1<<61 {
			r.add(at, 1<<19)
		}
	}
	require.NoError(t, r.verify())
	require.Less(t, r.Bytes(), 512*device.KiB, "what lies between is not paid for")
	for label := range r.have {
		r.remove(label)
	}
	require.NoError(t, r.verify())
	for range r.All {
		t.Fatal("nothing is left")
	}
}

// TestOneRangeInAThousandAreas has memory that is mostly somebody else's.
func TestOneRangeInAThousandAreas(t *testing.T) {
	r := newRanges()
	for i := range device.Size(1000) {
		require.NotZero(t, r.add(device.Addr(i*device.GiB), 2*device.KiB))
	}
	require.NoError(t, r.verify())
	require.Less(t, r.Bytes(), 256*device.KiB)
}

// TestEmptyWindowsGo has one range at a time, ever farther from the others.
func TestEmptyWindowsGo(t *testing.T) {
	r := newRanges()
	r.add(1, 1)
	for i := range device.Size(3000) {
		label := r.add(device.Addr((i+1)*device.TiB), 1)
		require.NotZero(t, label)
		r.remove(label)
	}
	require.NoError(t, r.verify())
	require.Less(t, r.Bytes(), 4*device.KiB)
}

// TestRandomRanges compares with the list after every call.
func TestRandomRanges(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := newRanges()
		span := uint64(1) << (8 + rng.IntN(20))
		for range 400 {
			if rng.IntN(3) > 0 {
				r.add(device.Addr(1+rng.Uint64N(span)), device.Size(1+rng.Uint64N(1+span>>(1+rng.IntN(8)))))
			} else if label := 1 + rng.Uint32N(r.next+1); r.have[label].Size != 0 {
				r.remove(label)
			}
			require.NoError(t, r.verify(), "seed %d", seed)
		}
	}
}

func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	r := newRanges()
	label := uint32(0)
	cycle := func() {
		for i := range device.Addr(64) {
			r.Set(1<<40+i<<12, 4096, uint32(i)+1)
		}
		for i := range device.Addr(64) {
			r.Clear(1<<40+i<<12, 4096, uint32(i)+1)
		}
	}
	for i := range device.Addr(64) {
		label++
		r.have[label] = device.Region{Addr: 1<<40 + i<<12, Size: 4096}
	}
	cycle()
	require.Zero(t, testing.AllocsPerRun(10, cycle))
}

func TestMistakesPanic(t *testing.T) {
	r := newRanges()
	r.add(4096, 4096)
	require.PanicsWithValue(t, "atlas: invariant (ranges are known): 0x0 is known as 1, not 2", func() {
		r.Clear(4096, 4096, 2)
	})
	r.have[2] = device.Region{Addr: 4100, Size: 1}
	require.PanicsWithValue(t, "atlas: invariant (ranges are disjoint): 0x1004 is in the ranges 1 and 2",
		func() { r.Set(4100, 1, 2) })
}

// FuzzAtlas reads ranges to enter, of which each third removes one instead.
func FuzzAtlas(f *testing.F) {
	f.Add([]byte("\x00\x10\x00\x10\x01\x10\x20\x08\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRanges()
		for ; len(data) >= 4; data = data[4:] {
			if data[0]%3 == 2 {
				if label := uint32(data[1]); r.have[label].Size != 0 {
					r.remove(label)
				}
			} else {
				r.add(device.Addr(binary.LittleEndian.Uint16(data[1:]))<<(data[0]%32)|1, 1<<(data[3]%24))
			}
			require.NoError(t, r.verify())
		}
	})
}
