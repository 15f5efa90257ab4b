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
	numPowers
)

// powers is the table of all powers: the name of each, and whether a method set has it.
var powers = [numPowers]struct {
	name        string
	implemented func(alloc.Inspector) bool
}{
	PowerHoles:          {"holes", is[Holes]},
	PowerFreeWalker:     {"free-walker", is[FreeWalker]},
	PowerTrimmer:        {"trimmer", is[Trimmer]},
	PowerFrontier:       {"frontier", is[Frontier]},
	PowerMetered:        {"metered", is[Metered]},
	PowerFailure:        {"failure", is[Failure]},
	PowerCeiling:        {"ceiling", is[Ceiling]},
	PowerClearer:        {"clearer", is[Clearer]},
	PowerReporter:       {"reporter", is[Reporter]},
	PowerConcurrent:     {"concurrent", is[Concurrent]},
	PowerWaiter:         {"waiter", is[Waiter]},
	PowerStreamRecorder: {"stream-recorder", is[StreamRecorder]},
	PowerPoller:         {"poller", is[Poller]},
	PowerPrivatePools:   {"private-pools", is[PrivatePools]},
	PowerCounted:        {"counted", is[Counted]},
	PowerHistorian:      {"historian", is[Historian]},
	PowerSelfTimed:      {"self-timed", is[SelfTimed]},
	PowerNeighbours:     {"neighbours", is[Neighbours]},
	PowerPlacer:         {"placer", is[Placer]},
	PowerMover:          {"mover", is[Mover]},
	PowerInformed:       {"informed", is[Informed]},
	PowerPlanner:        {"planner", is[Planner]},
	PowerReferenced:     {"referenced", is[Referenced]},
	PowerLocator:        {"locator", is[Locator]},
}

// is reports whether the method set of s has a power.
func is[T any](s alloc.Inspector) bool {
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

// Holes returns its largest free chunk without a walk.
type Holes interface {
	// LargestFree returns the size of the largest free chunk, or 0.
	LargestFree() device.Size
}

// FreeWalker shows its free chunks in the order in which its search tries them.
type FreeWalker interface {
	// WalkFree yields every free chunk in search order.
	WalkFree(yield func(alloc.Chunk) bool)
}

// Trimmer can give cached regions back to the device.
type Trimmer interface {
	// Trim gives back every region without a live block and returns their bytes.
	//
	// Postcondition: a region whose release the device refuses stays; the error is the device's.
	Trim() (device.Size, error)
}

// Frontier is BFC's timestamped mode: chunks freed before the frontier are safe to merge
// and to hand to any stream.
type Frontier interface {
	// SetFrontier raises the safe frontier to count. Lower counts are ignored.
	SetFrontier(count uint64)
	// QueuedFrees returns how many freed chunks wait for the frontier.
	QueuedFrees() int
}

// Metered reports the host memory of its metadata.
type Metered interface {
	// MetadataBytes returns the bytes of host memory held by tables, indexes and records,
	// unused capacity included. It costs at most O(regions).
	MetadataBytes() device.Size
}

// Failure remembers why the last request was refused.
type Failure interface {
	// LastRefusal returns the last refusal, and false if nothing was refused yet.
	LastRefusal() (Refusal, bool)
}

// Ceiling states the largest request that the strategy can ever grant.
type Ceiling interface {
	// MaxRequest returns that size in bytes. Anything larger is ErrInvalidRequest.
	MaxRequest() device.Size
}

// Clearer can reset its statistics.
type Clearer interface {
	// ClearStats applies [alloc.Stats.Clear] to the statistics.
	ClearStats()
}

// Reporter can explain its state to a person.
type Reporter interface {
	// AppendReport appends a report in lines of text about a request that was refused, and
	// returns the longer slice.
	AppendReport(text []byte, refused alloc.Request) []byte
}

// Concurrent marks a strategy that is safe for concurrent use.
type Concurrent interface {
	// ConcurrencySafe is a marker; it does nothing.
	ConcurrencySafe()
}

// Waiter marks a strategy whose Alloc may wait for memory. It must not be called with a
// lock held that Free needs.
type Waiter interface {
	// AllocMayWait is a marker; it does nothing.
	AllocMayWait()
}

// StreamRecorder keeps memory until other streams have finished with it. PyTorch calls it
// record_stream. It should also be a [Poller], so that callers can make it check.
//
// Free does not fail where the device refuses to mark a stream: the block stays [alloc.Pending],
// and the strategy tries again when it looks.
type StreamRecorder interface {
	// RecordStream records that work on a stream uses the live block at a. After the free the block
	// stays [alloc.Pending] until all work queued on the stream at that moment has finished. Recording
	// the stream of the request, or a stream again, changes nothing.
	//
	// Errors: ErrInvalidFree if no live block starts there, ErrClosed.
	RecordStream(a device.Addr, s device.Stream) error
}

// Poller can look which deferred frees may be finished.
type Poller interface {
	// Poll frees [alloc.Pending] blocks whose work has finished, and returns their bytes. It does not
	// wait. After an error of the device the blocks found so far are free.
	Poll() (device.Size, error)
}

// SelfTimed is a strategy that does its work elsewhere, such as in another process, and measures it
// there: the caller's clock would measure the way there and back.
type SelfTimed interface {
	// WorkTime returns the nanoseconds that calls of Alloc and Free have taken so far where the
	// work is done, by the clock of the wall. O(1).
	WorkTime() int64
}

// Informed uses hints of the program: the marks between its calls, and the lifetimes
// that it expects of blocks. These come with their requests ([alloc.Origin.Lifetime]), and may be
// wrong.
type Informed interface {
	// Mark passes the text of a mark: the start of a training step, a phase, an annotation. The
	// strategy may adapt, but grants and frees nothing.
	Mark(text string)
}

// Referenced frees a block by the reference that was returned with it, without a search for its
// address. A wrapper has the power only if it has the method: a wrapper that changes Free must
// change FreeRef in the same way.
type Referenced interface {
	// FreeRef does what Free(b.Addr) does, for a live block as Alloc returned it or [Mover] moved it.
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

// Reason is why a request was refused.
type Reason uint8

// The reasons.
const (
	ReasonNone      Reason = iota // nothing was refused
	ReasonZero                    // zero bytes (ErrInvalidRequest)
	ReasonOverflow                // the size overflows when it is rounded (ErrInvalidRequest)
	ReasonTooLarge                // above the strategy's maximum (ErrInvalidRequest)
	ReasonAlignment               // no power of two, or cannot be honoured (ErrInvalidRequest)
	ReasonLimit                   // the strategy's own limit leaves no room (ErrOutOfMemory)
	ReasonDevice                  // the device refused a region (ErrOutOfMemory)
	ReasonUnusable                // the device gave a region that did not serve the request (ErrOutOfMemory)
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
	Reason      Reason        // why
	Request     alloc.Request // the request
	Rounded     device.Size   // its size as the strategy rounds it; 0 if that is not known
	Asked       device.Size   // the last reservation tried on the way; 0 if none was
	Device      error         // error of the device; nil if it was not called
	LargestHole device.Size   // largest free chunk at that moment
	Free        device.Size   // bytes in free chunks at that moment
}

// Wrapper is a strategy around another one. It has the powers of the strategy behind it besides its
// own.
type Wrapper interface {
	// Wrapped returns the strategy behind, and the lock that has to be held while one of its
	// methods runs; nil for none.
	Wrapped() (alloc.Inspector, sync.Locker)
}

// haver is implemented by wrappers, whose method sets do not show the powers behind them,
// and by strategies whose powers depend on their configuration.
type haver interface{ Has(Power) bool }

// Has reports whether s really has the power, through any number of wrappers. Of [Referenced] the
// outermost one must have the method too.
func Has(s alloc.Inspector, p Power) bool {
	if p == PowerReferenced && !Implements(s, p) {
		return false
	}
	if h, ok := s.(haver); ok {
		return h.Has(p)
	}
	return Implements(s, p)
}

// Implements reports whether the method set of s has the power, regardless of [Has]. A strategy's
// own Has uses it for its unconditional powers.
func Implements(s alloc.Inspector, p Power) bool { return p < numPowers && powers[p].implemented(s) }

// reach calls do with s if it has the methods of T, or else with the first strategy behind it that
// has, while the locks between them are held. It reports whether one was found. T has one method:
// a wrapper may replace a part of a power.
func reach[T any](s alloc.Inspector, do func(T)) bool {
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
	return reach(inner, do)
}

// tell is reach for a required power. It fails with [alloc.ErrUnsupported] without it.
func tell[T any](s alloc.Inspector, p Power, do func(T)) error {
	if Has(s, p) && reach(s, do) {
		return nil
	}
	return alloc.ErrUnsupported
}

// try is tell for a method that may fail.
func try[T any](s alloc.Inspector, p Power, do func(T) error) (err error) {
	if missing := tell(s, p, func(t T) { err = do(t) }); missing != nil {
		return missing
	}
	return err
}

// ask is try for a method with a result.
func ask[T, R any](s alloc.Inspector, p Power, do func(T) (R, error)) (result R, err error) {
	err = try(s, p, func(t T) (err error) {
		result, err = do(t)
		return err
	})
	return result, err
}

// LargestFree returns the size of the largest free chunk of s, or 0. It uses [Holes], otherwise it
// costs a walk.
func LargestFree(s alloc.Inspector) (largest device.Size) {
	if reach(s, func(h Holes) { largest = h.LargestFree() }) {
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
	if reach(s, func(w FreeWalker) { w.WalkFree(yield) }) {
		return
	}
	for c := range s.Walk {
		if c.State == alloc.Free && !yield(c) {
			return
		}
	}
}

// Trim gives cached regions of s back to the device and returns their bytes. It fails
// with [alloc.ErrUnsupported] if s is no [Trimmer].
func Trim(s alloc.Inspector) (device.Size, error) { return ask(s, PowerTrimmer, Trimmer.Trim) }

// SetFrontier raises the safe frontier of s. It fails with [alloc.ErrUnsupported] if s is no
// [Frontier].
func SetFrontier(s alloc.Inspector, count uint64) error {
	return tell(s, PowerFrontier, func(f interface{ SetFrontier(count uint64) }) { f.SetFrontier(count) })
}

// QueuedFrees returns how many freed chunks wait for the frontier of s. It fails with
// [alloc.ErrUnsupported] if s is no [Frontier].
func QueuedFrees(s alloc.Inspector) (n int, err error) {
	err = tell(s, PowerFrontier, func(f interface{ QueuedFrees() int }) { n = f.QueuedFrees() })
	return n, err
}

// MetadataBytes returns the host memory of the metadata of s. It fails with
// [alloc.ErrUnsupported] if s is not [Metered].
func MetadataBytes(s alloc.Inspector) (n device.Size, err error) {
	err = tell(s, PowerMetered, func(m Metered) { n = m.MetadataBytes() })
	return n, err
}

// LastRefusal returns why s refused its last refused request. It returns false if
// nothing was refused yet or s lacks the power.
func LastRefusal(s alloc.Inspector) (last Refusal, known bool) {
	reach(s, func(f Failure) { last, known = f.LastRefusal() })
	return last, known
}

// MaxRequest returns the largest request that s can ever grant. Without [Ceiling] that
// is the largest size there is.
func MaxRequest(s alloc.Inspector) device.Size {
	largest := ^device.Size(0)
	reach(s, func(c Ceiling) { largest = c.MaxRequest() })
	return largest
}

// ClearStats resets the statistics of s. It fails with [alloc.ErrUnsupported] if s is no [Clearer].
func ClearStats(s alloc.Inspector) error { return tell(s, PowerClearer, Clearer.ClearStats) }

// RecordStream notes that work on a stream uses a live block of s. It fails with
// [alloc.ErrUnsupported] if s is no [StreamRecorder].
func RecordStream(s alloc.Inspector, a device.Addr, on device.Stream) error {
	return try(s, PowerStreamRecorder, func(r StreamRecorder) error { return r.RecordStream(a, on) })
}

// Poll makes free what is pending in s on work that has finished, and returns the bytes. It
// fails with [alloc.ErrUnsupported] if s is no [Poller].
func Poll(s alloc.Inspector) (device.Size, error) { return ask(s, PowerPoller, Poller.Poll) }

// WorkTime returns the nanoseconds that calls of Alloc and Free of s have taken so far where the
// work is done. It fails with [alloc.ErrUnsupported] if s is not [SelfTimed].
func WorkTime(s alloc.Inspector) (ns int64, err error) {
	err = tell(s, PowerSelfTimed, func(t SelfTimed) { ns = t.WorkTime() })
	return ns, err
}

// Mark passes a mark of the program to s. It fails with [alloc.ErrUnsupported] if s is not
// [Informed].
func Mark(s alloc.Inspector, text string) error {
	return tell(s, PowerInformed, func(i Informed) { i.Mark(text) })
}

// FreeRef takes back a block as s granted it. It uses [Referenced], or else frees by address.
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
	if Has(s, PowerLocator) && reach(s, func(l Locator) { c, err = l.BlockAt(a) }) {
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

// AppendReport appends the strategy's own report about a refused request to text. It
// fails with [alloc.ErrUnsupported] if s is no [Reporter].
func AppendReport(s alloc.Inspector, text []byte, refused alloc.Request) ([]byte, error) {
	err := tell(s, PowerReporter, func(r Reporter) { text = r.AppendReport(text, refused) })
	return text, err
}
