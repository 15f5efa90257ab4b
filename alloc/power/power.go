package power

import (
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Power names an optional ability of a strategy.
type Power uint8

// The powers, each with its interface.
const (
	PowerHoles          Power = iota // Holes
	PowerFreeWalker                  // FreeWalker
	PowerTrimmer                     // Trimmer
	PowerFrontier                    // Frontier
	PowerMetered                     // Metered
	PowerFailure                     // Failure
	PowerCeiling                     // Ceiling
	PowerClearer                     // Clearer
	PowerReporter                    // Reporter
	PowerConcurrent                  // Concurrent
	PowerWaiter                      // Waiter
	PowerStreamRecorder              // StreamRecorder
	PowerPoller                      // Poller
	PowerPrivatePools                // PrivatePools
	PowerCounted                     // Counted
	PowerHistorian                   // Historian
	PowerSelfTimed                   // SelfTimed
	PowerNeighbours                  // Neighbours
	PowerPlacer                      // Placer
	PowerMover                       // Mover
	PowerInformed                    // Informed
	PowerPlanner                     // Planner
	PowerReferenced                  // Referenced
	PowerLocator                     // Locator
	PowerSpanned                     // Spanned
	PowerConfigurable                // Configurable
	PowerMemPools                    // MemPools
	numPowers
)

// powers is the table of all powers: the name of each, and whether a method set has it.
var powers = [numPowers]struct {
	name        string
	implemented func(alloc.Inspector) bool
}{
	PowerHoles:          {"holes", implements[Holes]},
	PowerFreeWalker:     {"free-walker", implements[FreeWalker]},
	PowerTrimmer:        {"trimmer", implements[Trimmer]},
	PowerFrontier:       {"frontier", implements[Frontier]},
	PowerMetered:        {"metered", implements[Metered]},
	PowerFailure:        {"failure", implements[Failure]},
	PowerCeiling:        {"ceiling", implements[Ceiling]},
	PowerClearer:        {"clearer", implements[Clearer]},
	PowerReporter:       {"reporter", implements[Reporter]},
	PowerConcurrent:     {"concurrent", implements[Concurrent]},
	PowerWaiter:         {"waiter", implements[Waiter]},
	PowerStreamRecorder: {"stream-recorder", implements[StreamRecorder]},
	PowerPoller:         {"poller", implements[Poller]},
	PowerPrivatePools:   {"private-pools", implements[PrivatePools]},
	PowerCounted:        {"counted", implements[Counted]},
	PowerHistorian:      {"historian", implements[Historian]},
	PowerSelfTimed:      {"self-timed", implements[SelfTimed]},
	PowerNeighbours:     {"neighbours", implements[Neighbours]},
	PowerPlacer:         {"placer", implements[Placer]},
	PowerMover:          {"mover", implements[Mover]},
	PowerInformed:       {"informed", implements[Informed]},
	PowerPlanner:        {"planner", implements[Planner]},
	PowerReferenced:     {"referenced", implements[Referenced]},
	PowerLocator:        {"locator", implements[Locator]},
	PowerSpanned:        {"spanned", implements[Spanned]},
	PowerConfigurable:   {"configurable", implements[Configurable]},
	PowerMemPools:       {"mem-pools", implements[MemPools]},
}

// implements reports whether the method set of s has a power.
func implements[T any](s alloc.Inspector) bool {
	_, ok := s.(T)
	return ok
}

// String returns the power in lower case.
func (p Power) String() string {
	if p < numPowers {
		return powers[p].name
	}
	return "invalid"
}

// Powers yields every power.
func Powers(yield func(Power) bool) {
	for p := range numPowers {
		if !yield(p) {
			return
		}
	}
}

// Holes finds the largest free chunk without a walk.
type Holes interface {
	// LargestFree returns the size of the largest free chunk, or 0.
	LargestFree() device.Size
}

// FreeWalker yields the free chunks in the order in which the strategy's search tries them.
type FreeWalker interface {
	// WalkFree yields every free chunk in search order.
	WalkFree(yield func(alloc.Chunk) bool)
}

// Trimmer can release cached regions to the device.
type Trimmer interface {
	// Trim releases every region without a live block and returns their bytes.
	//
	// Postcondition: a region whose release the device refuses stays; the error is the device's.
	Trim() (device.Size, error)
}

// Frontier is BFC's timestamped mode: chunks freed before the frontier are safe to merge and to
// grant to any stream.
type Frontier interface {
	// SetFrontier raises the safe frontier to count. Lower counts are ignored.
	SetFrontier(count uint64)
	// QueuedFrees returns the number of freed chunks that wait for the frontier.
	QueuedFrees() int
}

// Metered reports the host memory of the strategy's metadata.
type Metered interface {
	// MetadataBytes returns the bytes of host memory held by tables, indexes and records,
	// unused capacity included. It costs at most O(regions).
	MetadataBytes() device.Size
}

// Failure records why the last request was refused.
type Failure interface {
	// LastRefusal returns the last refusal, and false if no request was refused yet.
	LastRefusal() (Refusal, bool)
}

// Ceiling reports the largest request that the strategy can ever grant.
type Ceiling interface {
	// MaxRequest returns that size in bytes. A larger request fails with ErrInvalidRequest.
	MaxRequest() device.Size
}

// Clearer can reset its statistics.
type Clearer interface {
	// ClearStats applies [alloc.Stats.Clear] to the statistics.
	ClearStats()
}

// Reporter describes its state as text.
type Reporter interface {
	// AppendReport appends a report in lines of text about a refused request, and returns the extended
	// slice.
	AppendReport(text []byte, refused alloc.Request) []byte
}

// Concurrent marks a strategy that is safe for concurrent use.
type Concurrent interface {
	// ConcurrencySafe is a marker and a no-op.
	ConcurrencySafe()
}

// Waiter marks a strategy whose Alloc may wait for memory. It must not be called with a
// lock held that Free needs.
type Waiter interface {
	// AllocMayWait is a marker and a no-op.
	AllocMayWait()
}

// StreamRecorder keeps memory until other streams have finished with it. PyTorch calls it
// record_stream. It should also be a [Poller], so that callers can make it check.
//
// Free does not fail if the device refuses to mark a stream: the block stays [alloc.Pending], and
// the strategy tries again at the next poll.
type StreamRecorder interface {
	// RecordStream records that work on a stream uses the live block at a. After the free the block
	// stays [alloc.Pending] until all work queued on the stream at that moment has finished. Recording
	// the stream of the request, or a stream again, changes nothing.
	//
	// Errors: ErrInvalidFree if no live block starts there, ErrClosed.
	RecordStream(a device.Addr, s device.Stream) error
}

// Poller can check which deferred frees may be finished.
type Poller interface {
	// Poll frees [alloc.Pending] blocks whose work has finished, and returns their bytes. It does not
	// wait. After an error of the device the blocks found so far are free.
	Poll() (device.Size, error)
}

// SelfTimed is a strategy that works in another process and measures its time there. The caller's
// clock would include the communication.
type SelfTimed interface {
	// WorkTime returns the nanoseconds of all calls of Alloc and Free so far, measured in that process
	// by wall-clock time. O(1).
	WorkTime() int64
}

// Informed uses hints of the program: the marks between its calls, and the expected lifetimes of
// blocks. Lifetimes come with the requests ([alloc.Origin.Lifetime]), and may be wrong.
type Informed interface {
	// Mark passes the text of a mark: the start of a training step, a phase, an annotation. The
	// strategy may adapt, but grants and frees nothing.
	Mark(text string)
}

// Referenced frees a block by the reference that was returned with it, without a search for its
// address. A wrapper has the power only if it has the method: a wrapper that changes Free must
// change FreeRef in the same way.
type Referenced interface {
	// FreeRef is Free(b.Addr) for a live block as Alloc returned it or [Mover] moved it.
	// It finds the block by b.Ref, or by its address if b.Ref is 0. It does not read b.Size. O(1)
	// more than the free itself.
	//
	// Errors: ErrInvalidFree if the reference names no live block that starts at b.Addr, ErrClosed.
	FreeRef(b alloc.Block) error
}

// Locator finds a block by its address without a walk. The chunk answers TensorFlow's queries:
// Requested is RequestedSize, Size is AllocatedSize, ID is AllocationId.
type Locator interface {
	// BlockAt returns the live chunk that starts at a, as Walk shows it. It costs what Free costs to
	// find the block, and the search for its region.
	//
	// Errors: ErrInvalidFree if no live block starts there, ErrClosed.
	BlockAt(a device.Addr) (alloc.Chunk, error)
}

// Spanned reports the capacities at which a strategy would have done the same. A search for the
// smallest device then replays a trace only where the outcome can differ.
type Spanned interface {
	// CapacitySpan returns capacities at which the strategy, fitted to them by ForCapacity, would have
	// made the same decisions so far. It assumes the same calls, and the same answers of the device
	// except those of MemoryInfo. Addresses may differ. A span without the present capacity states
	// nothing. O(regions).
	CapacitySpan() device.Span
}

// Reason is why a request was refused.
type Reason uint8

// The reasons.
const (
	ReasonNone      Reason = iota // no refusal
	ReasonZero                    // zero bytes (ErrInvalidRequest)
	ReasonOverflow                // the size overflows when it is rounded (ErrInvalidRequest)
	ReasonTooLarge                // above the strategy's maximum (ErrInvalidRequest)
	ReasonAlignment               // not a power of two, or not supported (ErrInvalidRequest)
	ReasonLimit                   // the strategy's own limit leaves no room (ErrOutOfMemory)
	ReasonDevice                  // the device refused a region (ErrOutOfMemory)
	ReasonUnusable                // the new region did not serve the request (ErrOutOfMemory)
)

var reasonNames = [...]string{
	"none", "zero bytes", "size overflows", "above the strategy's maximum", "alignment cannot be honoured",
	"limit reached", "device refused", "new region does not serve",
}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// Refusal describes one refused request. Sizes are bytes.
type Refusal struct {
	Reason      Reason        // reason of the refusal
	Request     alloc.Request // the request
	Rounded     device.Size   // rounded size; 0 if it is not known
	Asked       device.Size   // size of the last reservation tried for it; 0 if none was
	Device      error         // error of the device; nil if it was not called
	LargestHole device.Size   // largest free chunk at that moment
	Free        device.Size   // bytes in free chunks at that moment
}

// Wrapper is a strategy around another one. It has its own powers and those of the wrapped
// strategy.
type Wrapper interface {
	// Wrapped returns the wrapped strategy, and the lock that must be held while one of its methods
	// runs; nil for none.
	Wrapped() (alloc.Inspector, sync.Locker)
}

// powerReporter is implemented by wrappers, whose method sets do not show the wrapped powers,
// and by strategies whose powers depend on their configuration.
type powerReporter interface{ Has(Power) bool }

// Has reports whether s has the power, through any number of wrappers. For [Referenced] the
// outermost wrapper must have the method too.
func Has(s alloc.Inspector, p Power) bool {
	if p == PowerReferenced && !Implements(s, p) {
		return false
	}
	if h, ok := s.(powerReporter); ok {
		return h.Has(p)
	}
	return Implements(s, p)
}

// Implements reports whether the method set of s has the power, regardless of [Has]. A strategy's
// own Has uses it for its unconditional powers.
func Implements(s alloc.Inspector, p Power) bool { return p < numPowers && powers[p].implemented(s) }

// withPower calls do with s if it has the methods of T, or else with the first wrapped strategy
// that has them, holding the locks between them. It reports whether it found one. T has one method,
// because a wrapper may replace a part of a power.
func withPower[T any](s alloc.Inspector, do func(T)) bool {
	if own, ok := s.(T); ok {
		do(own)
		return true
	}
	w, ok := s.(Wrapper)
	if !ok {
		return false
	}
	inner, lock := w.Wrapped()
	if lock != nil {
		lock.Lock()
		defer lock.Unlock()
	}
	return withPower(inner, do)
}

// require is withPower for a required power. It fails with [alloc.ErrUnsupported] without it.
func require[T any](s alloc.Inspector, p Power, do func(T)) error {
	if Has(s, p) && withPower(s, do) {
		return nil
	}
	return alloc.ErrUnsupported
}

// requireError is require for a method that may fail.
func requireError[T any](s alloc.Inspector, p Power, do func(T) error) (err error) {
	if missing := require(s, p, func(t T) { err = do(t) }); missing != nil {
		return missing
	}
	return err
}

// requireResult is requireError for a method with a result.
func requireResult[T, R any](s alloc.Inspector, p Power, do func(T) (R, error)) (result R, err error) {
	err = requireError(s, p, func(t T) (err error) {
		result, err = do(t)
		return err
	})
	return result, err
}

// LargestFree returns the size of the largest free chunk of s, or 0. It uses [Holes], otherwise it
// costs a walk.
func LargestFree(s alloc.Inspector) (largest device.Size) {
	if withPower(s, func(h Holes) { largest = h.LargestFree() }) {
		return largest
	}
	for c := range s.Walk {
		if c.State == alloc.Free {
			largest = max(largest, c.Size)
		}
	}
	return largest
}

// WalkFree yields the free chunks of s in the order in which its search tries them. It
// uses [FreeWalker], or else yields them by address.
func WalkFree(s alloc.Inspector, yield func(alloc.Chunk) bool) {
	if withPower(s, func(w FreeWalker) { w.WalkFree(yield) }) {
		return
	}
	for c := range s.Walk {
		if c.State == alloc.Free && !yield(c) {
			return
		}
	}
}

// Trim releases cached regions of s to the device and returns their bytes. It fails with
// [alloc.ErrUnsupported] if s is not a [Trimmer].
func Trim(s alloc.Inspector) (device.Size, error) {
	return requireResult(s, PowerTrimmer, Trimmer.Trim)
}

// SetFrontier raises the safe frontier of s. It fails with [alloc.ErrUnsupported] if s is not a
// [Frontier].
func SetFrontier(s alloc.Inspector, count uint64) error {
	return require(s, PowerFrontier, func(f interface{ SetFrontier(count uint64) }) { f.SetFrontier(count) })
}

// QueuedFrees returns the number of freed chunks that wait for the frontier of s. It fails with
// [alloc.ErrUnsupported] if s is not a [Frontier].
func QueuedFrees(s alloc.Inspector) (n int, err error) {
	err = require(s, PowerFrontier, func(f interface{ QueuedFrees() int }) { n = f.QueuedFrees() })
	return n, err
}

// MetadataBytes returns the host memory of the metadata of s. It fails with
// [alloc.ErrUnsupported] if s is not [Metered].
func MetadataBytes(s alloc.Inspector) (n device.Size, err error) {
	err = require(s, PowerMetered, func(m Metered) { n = m.MetadataBytes() })
	return n, err
}

// LastRefusal returns the last refusal of s. It returns false if no request was refused yet or s
// lacks the power.
func LastRefusal(s alloc.Inspector) (last Refusal, known bool) {
	withPower(s, func(f Failure) { last, known = f.LastRefusal() })
	return last, known
}

// MaxRequest returns the largest request that s can ever grant. Without [Ceiling] it returns the
// maximum of [device.Size].
func MaxRequest(s alloc.Inspector) device.Size {
	largest := ^device.Size(0)
	withPower(s, func(c Ceiling) { largest = c.MaxRequest() })
	return largest
}

// ClearStats resets the statistics of s. It fails with [alloc.ErrUnsupported] if s is not a
// [Clearer].
func ClearStats(s alloc.Inspector) error { return require(s, PowerClearer, Clearer.ClearStats) }

// RecordStream records that work on a stream uses a live block of s. It fails with
// [alloc.ErrUnsupported] if s is not a [StreamRecorder].
func RecordStream(s alloc.Inspector, a device.Addr, on device.Stream) error {
	return requireError(s, PowerStreamRecorder, func(r StreamRecorder) error { return r.RecordStream(a, on) })
}

// Poll frees the pending blocks of s whose work has finished, and returns their bytes. It fails
// with [alloc.ErrUnsupported] if s is not a [Poller].
func Poll(s alloc.Inspector) (device.Size, error) { return requireResult(s, PowerPoller, Poller.Poll) }

// WorkTime returns the nanoseconds of all calls of Alloc and Free so far, measured by s. It fails
// with [alloc.ErrUnsupported] if s is not [SelfTimed].
func WorkTime(s alloc.Inspector) (ns int64, err error) {
	err = require(s, PowerSelfTimed, func(t SelfTimed) { ns = t.WorkTime() })
	return ns, err
}

// Mark passes a mark of the program to s. It fails with [alloc.ErrUnsupported] if s is not
// [Informed].
func Mark(s alloc.Inspector, text string) error {
	return require(s, PowerInformed, func(i Informed) { i.Mark(text) })
}

// FreeRef frees a block as s granted it. It uses [Referenced], or else frees by address.
func FreeRef(s alloc.Strategy, b alloc.Block) error {
	if r, ok := ReferencedOf(s); ok {
		return r.FreeRef(b)
	}
	return s.Free(b.Addr)
}

// ReferencedOf returns s if it is [Referenced], for loops that cannot afford a lookup at every
// free.
func ReferencedOf(s alloc.Inspector) (Referenced, bool) {
	r, ok := s.(Referenced)
	return r, ok && Has(s, PowerReferenced)
}

// BlockAt returns the live chunk of s that starts at a: sizes, ID, tag and stream. It fails with
// [alloc.ErrInvalidFree] if no live block starts there. It uses [Locator], otherwise it costs a
// walk.
func BlockAt(s alloc.Inspector, a device.Addr) (c alloc.Chunk, err error) {
	if Has(s, PowerLocator) && withPower(s, func(l Locator) { c, err = l.BlockAt(a) }) {
		return c, err
	}
	err = alloc.ErrInvalidFree
	s.Walk(func(at alloc.Chunk) bool {
		if at.Addr == a && at.State == alloc.Live {
			c, err = at, nil
		}
		return err != nil
	})
	return c, err
}

// CapacitySpan returns the capacities at which s would have made the same decisions so far. It
// returns false if s is not [Spanned].
func CapacitySpan(s alloc.Inspector) (span device.Span, ok bool) {
	err := require(s, PowerSpanned, func(t Spanned) { span = t.CapacitySpan() })
	return span, err == nil
}

// AppendReport appends the strategy's own report about a refused request to text. It fails with
// [alloc.ErrUnsupported] if s is not a [Reporter].
func AppendReport(s alloc.Inspector, text []byte, refused alloc.Request) ([]byte, error) {
	err := require(s, PowerReporter, func(r Reporter) { text = r.AppendReport(text, refused) })
	return text, err
}
