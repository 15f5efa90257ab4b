package textbook

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/oracle"
)

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
)

// stubborn is a device that refuses some releases.
type stubborn struct {
	oracle.Shelf
	refusals int
}

func (s *stubborn) Release(p device.Addr) error {
	if s.refusals--; s.refusals >= 0 {
		return device.ErrInjected
	}
	return s.Shelf.Release(p)
}

// open returns an allocator over a device that refuses the first release.
func open(t *testing.T, c Config) *Allocator {
	t.Helper()
	a, err := New(&stubborn{refusals: 1}, c)
	require.NoError(t, err)
	return a
}

// grant allocates and returns the address.
func grant(t *testing.T, a *Allocator, n device.Size) device.Addr {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: n})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr
}

// TestCodeIsShortEnoughToRead counts the lines of this package that hold more than comments.
func TestCodeIsShortEnoughToRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	lines := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		f := token.NewFileSet().AddFile(name, -1, len(text))
		var s scanner.Scanner
		s.Init(f, text, nil, 0) // without comments
		last := 0
		for pos, tok, _ := s.Scan(); tok != token.EOF; pos, tok, _ = s.Scan() {
			if line := f.Line(pos); line != last {
				lines, last = lines+1, line
			}
		}
	}
	t.Log(lines, "lines of code")
	require.LessOrEqual(t, lines, 400)
}

func TestConfigErrors(t *testing.T) {
	_, err := New(nil, Config{Compat: "notebook"})
	require.EqualError(t, err, `bfc: compat "notebook": want "textbook"`)
	_, err = New(nil, Config{Limit: 1 << 60})
	require.EqualError(t, err, "bfc: limit 1152921504606846976: want at most 16TiB, because of the array of handles")
}

// TestArrayHasOneEntryForEachChunk looks up every 256 bytes of a region.
func TestArrayHasOneEntryForEachChunk(t *testing.T) {
	a := open(t, Config{Limit: 4 * device.MiB})
	first := grant(t, a, 700)
	second := grant(t, a, device.MiB)
	require.NoError(t, a.Free(first))
	third := grant(t, a, 200)
	starts := map[device.Addr]bool{first: true, third: true, third + 256: true, second: true, second + 1<<20: true}
	r := a.regionManager.regions[0]
	for p := r.Addr; p < r.End(); p += 256 {
		require.Equal(t, starts[p], a.regionManager.getHandle(p) != invalidChunkHandle, "%v", p)
	}
}

func TestBinsDouble(t *testing.T) {
	for b := range int32(numBins) {
		start := minAllocationSize << b
		require.Equal(t, b, binNumForSize(start))
		require.Equal(t, b, binNumForSize(2*start-minAllocationSize))
	}
	require.Equal(t, int32(numBins-1), binNumForSize(device.TiB))
}

// TestRefusedCloseIsTriedAgain shows the region that the device does not take back as slack.
func TestRefusedCloseIsTriedAgain(t *testing.T) {
	a := open(t, Config{AllowGrowth: true})
	p := grant(t, a, 1)
	require.ErrorIs(t, a.Close(), device.ErrInjected)
	require.NoError(t, a.Check())
	for c := range a.Walk {
		require.Equal(t, alloc.Slack, c.State)
	}
	require.ErrorIs(t, a.Free(p), alloc.ErrClosed)
	require.NoError(t, a.Close())
	require.Zero(t, a.Stats().Reserved)
}

// TestCheckNamesBrokenInvariants breaks one at a time.
func TestCheckNamesBrokenInvariants(t *testing.T) {
	for want, spoil := range map[string]func(*Allocator){
		"X1 (chunks tile":     func(a *Allocator) { a.chunks[1].size += minAllocationSize },
		"X2 (prev mirrors":    func(a *Allocator) { a.chunks[2].prev = 2 },
		"X3 (the array":       func(a *Allocator) { a.regionManager.setHandle(a.chunks[2].ptr, 1) },
		"X4 (the bins have t": func(a *Allocator) { a.bins[0] = append(a.bins[0], 1) },
		"X5 (what a split":    func(a *Allocator) { a.chunks[2].requestedSize, a.chunks[3].requestedSize = 1, 1000 },
		"X6 (a record":        func(a *Allocator) { a.chunks = append(a.chunks, chunk{}) },
	} {
		a := open(t, Config{Limit: device.MiB})
		for _, n := range []device.Size{256, 512, 489} {
			grant(t, a, n)
		}
		spoil(a)
		require.ErrorContains(t, a.Check(), "bfc: invariant "+want)
	}
}
