package devicetest

import (
	"math/rand/v2"

	"github.com/vramyard/vramyard/device"
)

var needContents = []device.Capability{device.CapContents}

var contentsPromises = []promise{
	{name: "FilledContentsAreRead", needs: needContents, run: fillAndCompare},
	{name: "OnlyHeldMemoryIsAccessed", needs: needContents, run: contentsMisuse},
	{name: "ContentsAgreeWithBytes", needs: needContents, run: contentsAgree},
}

// fillAndCompare writes and reads odd lengths at odd starts.
func fillAndCompare(r *rig) {
	g := r.reserve(nil, device.MiB, 0)
	r.fill(nil, g.Addr, g.Size, 0x04030201)
	r.requireFilled(g.Addr, g.Size, 0x04030201)
	for start := range device.Size(4) { // words are aligned to addresses, not to the start
		for n := device.Size(1); n < 10; n++ {
			r.requireFilled(g.Addr.Add(4096+start), n, 0x04030201)
		}
	}
	r.fill(nil, g.Addr.Add(4097), 6, 0x04ff02ff) // bytes 2 and 4 of a word keep their values
	at, same := r.compare(nil, g.Addr, g.Size, 0x04030201)
	if want := g.Addr.Add(4098); same || at != want {
		r.Fatalf("Compare reports the first difference at %v (none: %v), want %v", at, same, want)
	}
	at, same = r.compare(nil, g.Addr.Add(4099), 2, 0x04030201)
	if want := g.Addr.Add(4100); same || at != want {
		r.Fatalf("Compare reports the first difference at %v (none: %v), want %v", at, same, want)
	}
	r.requireFilled(g.Addr.Add(4097), 6, 0x04ff02ff)
	r.requireFilled(g.Addr, 4097, 0x04030201)
	r.requireFilled(g.Addr.Add(4103), g.Size-4103, 0x04030201)
	r.fill(nil, g.End()-1, 1, 0)
	if at, same = r.compare(nil, g.Addr.Add(8192), g.Size-8192, 0x04030201); same || at != g.End()-1 {
		r.Fatalf("only the last byte differs, and Compare reports %v (none: %v)", at, same)
	}
	r.release(nil, g.Addr)
}

// contentsMisuse accesses memory that is not held.
func contentsMisuse(r *rig) {
	a, b := r.reserve(nil, device.MiB, 0), r.reserve(nil, device.MiB, 0)
	r.fill(nil, a.Addr, a.Size, 1)
	r.fill(nil, b.Addr, b.Size, 2)
	for _, n := range []device.Size{2 * a.Size, huge, ^device.Size(0)} {
		if n == 2*a.Size && (b.Addr == a.End() || a.Addr == b.End()) {
			continue // both are held
		}
		r.fill(device.ErrUnmapped, a.Addr, n, 9)
		r.compare(device.ErrUnmapped, a.Addr, n, 9)
	}
	r.fill(device.ErrUnmapped, 0, 4, 9)
	r.compare(device.ErrUnmapped, 8, 4, 9)
	r.fill(device.ErrUnmapped, ^device.Addr(0), 1, 9)
	r.requireFilled(a.Addr, a.Size, 1)
	r.release(nil, a.Addr)
	r.fill(device.ErrUnmapped, a.Addr, 1, 9)
	r.compare(device.ErrUnmapped, a.End()-1, 1, 1)
	r.requireFilled(b.Addr, b.Size, 2)
	r.release(nil, b.Addr)
}

// contentsAgree fills and compares at random, and expects the same results as from an array of
// bytes.
func contentsAgree(r *rig) {
	const size = 4096
	rng := r.rng(1)
	g := r.reserve(nil, size, 0)
	bytes := make([]byte, size)
	fill := func(start, n int, pattern uint32) {
		r.fill(nil, g.Addr.Add(device.Size(start)), device.Size(n), pattern)
		for i := start; i < start+n; i++ {
			bytes[i] = patternByte(g.Addr.Add(device.Size(i)), pattern)
		}
	}
	fill(0, size, 0)
	for range 1000 {
		start := rng.IntN(size)
		n := 1 + rng.IntN(min(size-start, 1+rng.IntN(size)))
		pattern := somePattern(rng)
		if rng.IntN(3) == 0 {
			fill(start, n, pattern)
			continue
		}
		want, same := device.Addr(0), true
		for i := start; i < start+n && same; i++ {
			if at := g.Addr.Add(device.Size(i)); bytes[i] != patternByte(at, pattern) {
				want, same = at, false
			}
		}
		at, got := r.compare(nil, g.Addr.Add(device.Size(start)), device.Size(n), pattern)
		if got != same || !same && at != want {
			r.Fatalf("comparing %d bytes at +%d with %#x: first difference at %v (none: %v), want %v (none: %v)",
				n, start, pattern, at, got, want, same)
		}
	}
	r.release(nil, g.Addr)
}

// patternByte returns the byte at an address that a fill with the pattern writes.
func patternByte(a device.Addr, pattern uint32) byte { return byte(pattern >> (8 * (a % 4))) }

// somePattern draws one of a few patterns, so that comparisons often match, and some patterns share
// bytes.
func somePattern(rng *rand.Rand) uint32 {
	return []uint32{0, 1, 0x01010101, 0x01000001, 0xffffffff, 0x04030201}[rng.IntN(6)]
}

// rng returns the random numbers of a check, and logs the seed.
func (r *rig) rng(check uint64) *rand.Rand {
	r.Helper()
	r.Logf("seed: -devicetest.seed=%d", *flagSeed)
	return rand.New(rand.NewPCG(*flagSeed, check))
}
