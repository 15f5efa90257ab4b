package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/strategies"
)

// healthy returns the first subject of a catalogue entry.
func healthy(t *testing.T, name, config string) props.Subject {
	t.Helper()
	return subjects(t, name, config)[0]
}

// subjects returns the subjects of a catalogue entry.
func subjects(t *testing.T, name, config string) []props.Subject {
	t.Helper()
	setup, err := strategies.All().Lookup(name, []byte(config))
	require.NoError(t, err)
	all, err := check.Subjects(setup, sim.Config{})
	require.NoError(t, err)
	return all
}

// tiny is a buddy of 4 KiB regions.
func tiny(t *testing.T) props.Subject {
	t.Helper()
	return healthy(t, "buddy:xdl", `{"region_bytes":4096,"block_bytes":256}`)
}

// bug is a mistake that a wrapper makes in the name of the strategy inside.
type bug string

// The bugs.
const (
	forgetsFree  bug = "a free at a rare moment does nothing"
	panicsOnFree bug = "a free at a rare moment panics"
	keepsRegions bug = "close gives nothing back"
	walksBadly   bug = "a walk at a rare moment panics"
	hangsOnFree  bug = "a free at a rare moment does not return"
)

// broken is a strategy with a bug.
type broken struct {
	wrap.Forwarder
	bug     bug
	release chan struct{} // ends what hangs
}

// rare reports whether this is a moment at which a bug shows. About one sequence in thirty
// has one, and few calls are enough to make one.
func (b *broken) rare() bool {
	s := b.Stats()
	return s.Live >= 3 && s.Requested%1024 == 77
}

// breaking returns the subject with a bug.
func breaking(s props.Subject, b bug) props.Subject { return hanging(s, b, nil) }

// hanging returns the subject with a bug that may hang until it is released.
func hanging(s props.Subject, b bug, release chan struct{}) props.Subject {
	return s.Wrapped(string(b[:5]), func(a alloc.Strategy) (alloc.Strategy, error) {
		return &broken{wrap.Forward(a, nil), b, release}, nil
	})
}

// Free implements [alloc.Allocator].
func (b *broken) Free(a device.Addr) error {
	if b.rare() {
		switch b.bug {
		case forgetsFree:
			return nil
		case panicsOnFree:
			panic("a bad moment")
		case hangsOnFree:
			<-b.release
		}
	}
	return b.Forwarder.Free(a)
}

// Walk implements [alloc.Inspector].
func (b *broken) Walk(yield func(alloc.Chunk) bool) {
	if b.bug == walksBadly && b.rare() {
		panic("lost")
	}
	b.Forwarder.Walk(yield)
}

// Close implements [alloc.Strategy].
func (b *broken) Close() error {
	if b.bug == keepsRegions {
		return nil
	}
	return b.Forwarder.Close()
}
