package pages_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/pages"
)

const page = 4096

func TestEmptyMapHasNoLabel(t *testing.T) {
	m := pages.New(12)
	require.Equal(t, device.Size(page), m.Page())
	for _, a := range []device.Addr{0, 1, 0x7f0000000000, ^device.Addr(0)} {
		require.Zero(t, m.Get(a))
		m.Set(a, 1, 0) // what has no label loses none
	}
	require.Zero(t, m.Bytes())
}

// TestLabelIsOfTheFirstByte has ranges that share pages, as the package comment tells it.
func TestLabelIsOfTheFirstByte(t *testing.T) {
	m := pages.New(12)
	m.Set(page, page+100, 1)           // ends in page 2
	m.Set(2*page+200, 3*page, 2)       // starts in page 2, ends in page 5
	m.Set(5*page+200, page-200, 3)     // lies in page 5 alone
	m.Set(6*page-device.Addr(0), 1, 4) // the first byte of page 6
	m.Set(7*page, 2*page, 5)           // two whole pages
	want := []uint32{0, 1, 1, 2, 2, 2, 4, 5, 5, 0}
	for p, label := range want {
		for _, at := range []device.Addr{0, 1, 100, page - 1} {
			require.Equal(t, label, m.Get(device.Addr(p)*page+at), "page %d", p)
		}
	}
	for a := device.Addr(2*page + 200); a < 5*page+200; a += 8 { // a page or longer
		require.Contains(t, []uint32{m.Get(a), m.Get(a + page - 1)}, uint32(2), "%v", a)
	}
	m.Set(2*page+200, 3*page, 0)
	require.Equal(t, uint32(1), m.Get(2*page+300), "the neighbour keeps its page")
	require.Zero(t, m.Get(3*page))
}

func TestRangesEndAtTheLastAddress(t *testing.T) {
	for _, log := range []uint8{8, 12, 21, 55} {
		m := pages.New(log)
		last := ^device.Addr(0)
		size := device.Size(1) << log
		m.Set(last-device.Addr(size)+1, size, 7)
		require.Equal(t, uint32(7), m.Get(last))
		m.Set(0, size, 8)
		require.Equal(t, uint32(8), m.Get(0))
		require.Equal(t, uint32(7), m.Get(last))
		m.Set(last-device.Addr(size)+1, size, 0)
		require.Zero(t, m.Get(last))
		m.Set(last, 1, 9) // no page starts there
		require.Zero(t, m.Get(last))
	}
}

// oracle is the labels by page.
type oracle map[uint64]uint32

func (o oracle) set(a device.Addr, n device.Size, log uint8, label uint32) {
	for p := uint64(a) >> log; p <= (uint64(a)+uint64(n)-1)>>log; p++ {
		if device.Addr(p<<log) >= a {
			o[p] = label
		}
	}
}

// verify looks at every page that ever had a label, at its neighbours and at some afar.
func verify(t *testing.T, o oracle, m *pages.Map, log uint8) {
	for p := range o {
		for _, q := range []uint64{p - 1, p, p + 1, p + 256, p - 256, p + 1<<20} {
			q = q << log >> log // as far as there are addresses
			if got := m.Get(device.Addr(q<<log | q&1)); got != o[q] {
				t.Fatalf("page %d: label %d, want %d", q, got, o[q])
			}
		}
	}
}

// verifyAll compares what Range yields with the oracle.
func verifyAll(t *testing.T, o oracle, m *pages.Map, log uint8) {
	labels, below := 0, device.Addr(0)
	for a, label := range m.Range {
		if labels++; o[uint64(a)>>log] != label || a <= below || uint64(a)&(1<<log-1) != 0 {
			t.Fatalf("%v: label %d, want %d; below it %v", a, label, o[uint64(a)>>log], below)
		}
		below = a
	}
	for _, label := range o {
		if label != 0 {
			labels--
		}
	}
	require.Zero(t, labels)
	for range m.Range {
		break // as whoever has found what it looked for
	}
}

// drive sets ranges as the bytes say, of four bytes each, and compares with the oracle. Ranges lie
// in some clusters, near or far apart.
func drive(t *testing.T, calls []byte) {
	clusters := []uint64{0x7f0000000000, 0x7f0000000000 + 1<<24, 0x7e0000000000, 1 << 20, 1<<63 + 1<<21, 1<<64 - 1<<25}
	for _, log := range []uint8{8, 12} {
		m, o := pages.New(log), oracle{}
		for call := range slices.Chunk(calls, 4) {
			if len(call) < 4 {
				break
			}
			a := device.Addr(clusters[int(call[0])%len(clusters)] + uint64(call[1])<<15 + uint64(call[2])*37)
			n := device.Size(call[2])<<9 + device.Size(call[3]) + 1
			label := uint32(call[3]) % 5
			m.Set(a, n, label)
			o.set(a, n, log, label)
			if got := m.Get(a.Add(n - 1)); got != o[uint64(a.Add(n-1))>>log] {
				t.Fatalf("%v: label %d, want %d", a, got, o[uint64(a.Add(n-1))>>log])
			}
		}
		verify(t, o, &m, log)
		verifyAll(t, o, &m, log)
	}
}

func TestAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		calls := make([]byte, 4*400)
		for i := range calls {
			calls[i] = byte(rng.Uint32())
			if seed%2 == 0 && i%4 == 0 {
				calls[i] = byte(rng.IntN(2)) // near each other
			}
		}
		drive(t, calls)
	}
}

func FuzzAgreesWithMap(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 1, 1, 2, 3, 0, 1, 2, 0})
	f.Add([]byte{4, 255, 255, 1, 5, 0, 9, 2, 3, 0, 1, 3, 4, 255, 255, 0})
	f.Fuzz(func(t *testing.T, calls []byte) { drive(t, calls[:min(len(calls), 1<<12)]) })
}

// TestSteadyStateAllocatesNothing has as many ranges at any time, which wander upwards,
// downwards, or jump between places that are far apart.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, at := range map[string]func(i uint64) device.Addr{
		"up":   func(i uint64) device.Addr { return device.Addr(1<<40 + i<<16) },
		"down": func(i uint64) device.Addr { return device.Addr(1<<40 - i<<16) },
		"far":  func(i uint64) device.Addr { return device.Addr(1<<40*(1+i%3) + i%1000<<16) },
	} {
		m := pages.New(12)
		i := uint64(0)
		step := func() {
			if i >= 100 {
				m.Set(at(i-100), 1<<16, 0)
			}
			m.Set(at(i), 1<<16, uint32(i)+1)
			i++
		}
		for range 10000 {
			step()
		}
		require.Zero(t, testing.AllocsPerRun(10000, step), name)
		require.Equal(t, uint32(i), m.Get(at(i-1)), name)
		require.Less(t, m.Bytes(), device.Size(250*1024), name)
	}
}

// BenchmarkGet asks for random pages of 16 KiB, of so many in a row.
func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1000, 100000, 1000000} {
		b.Run(fmt.Sprintf("pages=%d", n), func(b *testing.B) {
			m := pages.New(14)
			for i := range n {
				m.Set(0x7f0000000000+device.Addr(i)<<14, 1<<14, uint32(i)+1)
			}
			rng := rand.New(rand.NewPCG(1, 0))
			draws := make([]device.Addr, 1<<16)
			for i := range draws {
				draws[i] = 0x7f0000000000 + device.Addr(rng.IntN(n))<<14
			}
			sum := uint32(0)
			for i := 0; b.Loop(); i++ {
				sum += m.Get(draws[i&(1<<16-1)])
			}
			if sum == 0 {
				b.Fatal("no labels")
			}
			b.ReportMetric(float64(m.Bytes())/float64(n), "B/page")
		})
	}
}
