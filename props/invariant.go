package props

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Number names an invariant that every strategy keeps. Numbers are stable: a number that
// is no longer used is not given to another invariant.
type Number int

// The invariants; docs/invariants.md explains each.
const (
	ITiling        Number = 1  // chunks tile their region
	IRegions       Number = 2  // regions shown are those held from the device
	IWalk          Number = 3  // a walk can be stopped and repeated
	IChunk         Number = 4  // the fields of a chunk make sense
	ICoalescing    Number = 5  // free neighbours are merged as promised
	IClass         Number = 6  // a free chunk is of the class of its size
	IFreeList      Number = 7  // the free chunks of the search are the free chunks of the walk
	ISearchOrder   Number = 8  // the search order is the promised one
	IHole          Number = 9  // the largest hole is the largest free chunk
	IDisjoint      Number = 10 // live blocks are disjoint
	IContained     Number = 11 // a block lies in one region
	IAligned       Number = 12 // a block is aligned as asked and promised
	IGrant         Number = 13 // a block is as large as asked and not larger than promised
	IShown         Number = 14 // live chunks are the granted blocks
	ILabels        Number = 15 // live chunks carry stream and tag of their request
	IAccounting    Number = 16 // statistics equal the walk
	INesting       Number = 17 // requested <= allocated <= active <= reserved
	ICounters      Number = 18 // counters and peaks equal the model's
	IDeviceAccount Number = 19 // the reserved bytes match the device
	ILimit         Number = 20 // no more is reserved than the limit
	ICheck         Number = 21 // private indexes are sound
	IRequestAnswer Number = 22 // a request gets the right answer
	IFreeAnswer    Number = 23 // a free gets the right answer
	IRefusal       Number = 24 // a refused mistake changes nothing
	IOutOfMemory   Number = 25 // running out changes no live block
	IHonest        Number = 26 // out of memory only without a free chunk that serves
	IRecord        Number = 27 // the last refusal is recorded correctly
	IHolding       Number = 28 // freeing gives regions back only if promised
	ITrim          Number = 29 // trimming returns the bytes it reports
	IDrain         Number = 30 // freeing everything leaves nothing behind
	IDeterminism   Number = 31 // the same calls give the same answers
	IClose         Number = 32 // closing gives everything back
	IClosed        Number = 33 // a closed strategy refuses
	IFault         Number = 34 // a device fault surfaces only where it may
	INoPanic       Number = 35 // nothing panics
	ITerminates    Number = 36 // every call ends
	IWarm          Number = 37 // the warm path takes nothing from the heap
	IAgreement     Number = 38 // strategies differ in placement only
	IIndifference  Number = 39 // labels move nothing
	IUndo          Number = 40 // a block freed at once leaves the memory as it was
	IObservation   Number = 41 // looking changes nothing
	ITraceless     Number = 42 // a refused mistake has no consequences later
	ITranslation   Number = 43 // where the device's memory begins does not matter
	IBounded       Number = 44 // bounded demand needs bounded memory
	ILinear        Number = 45 // concurrent calls are as if one after another
	IRecency       Number = 46 // memory is as unsafe as its newest byte
	IMapping       Number = 47 // memory is mapped exactly where chunks are held
	IAlias         Number = 48 // memory counts once, even if mapped several times
	IOrder         Number = 49 // memory goes to a stream that comes after its last uses
	IPending       Number = 50 // memory is pending as long as recorded streams use it
	IContents      Number = 51 // the contents of a block stay while it lives
	IRedirected    Number = 52 // a block lies in the pool of its request
	IApart         Number = 53 // memory stays in its pool
	IKept          Number = 54 // a pool with users keeps its memory
	IGone          Number = 55 // a pool without users returns its memory
	IPoolAnswer    Number = 56 // a call about a pool gets the right answer
	IIdle          Number = 57 // redirecting nothing changes nothing
	ICounted       Number = 58 // counters by name equal the walk
	IHistory       Number = 59 // the reported history is correct
	IUnwaiting     Number = 60 // no waiting for streams during a capture
	IPlacement     Number = 61 // a block lies where promised
	IReturnOrder   Number = 62 // regions go back in the promised order
	ICard          Number = 63 // a card answers as the simulated device does
	INeighbours    Number = 64 // a freed block coalesces with the predicted bytes
	IForeseen      Number = 65 // a request after frees is answered as predicted
	IMoved         Number = 66 // blocks that are moved slide down in order
	IRenewed       Number = 67 // a heap that was trimmed to nothing is as good as new
	IPreallocated  Number = 68 // a strategy that reserves its limit at once declares it
	IUnbound       Number = 69 // the capacity matters to refusals only
	IMetered       Number = 70 // metadata takes the host memory that is claimed
	IReduced       Number = 71 // a reduced configuration decides the same
	IFitted        Number = 72 // a configuration fits the device that it is for
	IReference     Number = 73 // a reference frees its block and no other
	ILocated       Number = 74 // a block is found by its address
	ISpan          Number = 75 // a strategy does the same at the capacities that it reports
	IConfAnswer    Number = 76 // a change of settings gets the right answer, and moves nothing
)

var invariantNames = [...]string{
	ITiling: "tiling", IRegions: "regions", IWalk: "walk", IChunk: "chunk", ICoalescing: "coalescing",
	IClass: "class", IFreeList: "free list", ISearchOrder: "search order", IHole: "largest hole",
	IDisjoint: "disjoint blocks", IContained: "containment", IAligned: "alignment", IGrant: "grant",
	IShown: "live chunks", ILabels: "labels", IAccounting: "accounting", INesting: "nesting",
	ICounters: "counters", IDeviceAccount: "device account", ILimit: "limit", ICheck: "private indexes",
	IRequestAnswer: "answer to a request", IFreeAnswer: "answer to a free", IRefusal: "refused mistake",
	IOutOfMemory: "out of memory", IHonest: "honest refusal", IRecord: "refusal record",
	IHolding: "holding", ITrim: "trim", IDrain: "drain", IDeterminism: "determinism", IClose: "close",
	IClosed: "closed", IFault: "device fault", INoPanic: "no panic", ITerminates: "termination",
	IWarm: "warm path", IAgreement: "agreement", IIndifference: "indifference", IUndo: "undo",
	IObservation: "observation", ITraceless: "traceless mistakes", ITranslation: "translation",
	IBounded: "boundedness", ILinear: "linearizability", IRecency: "recency",
	IMapping: "mapping", IAlias: "aliases", IOrder: "stream order", IPending: "pending", IContents: "contents",
	IRedirected: "redirection", IApart: "pools apart", IKept: "pool kept", IGone: "pool gone",
	IPoolAnswer: "answer about a pool",
	IIdle:       "idle redirection", ICounted: "counters by name", IHistory: "history", IUnwaiting: "unwaiting",
	IPlacement: "placement", IReturnOrder: "order of return", ICard: "card",
	INeighbours: "neighbours", IForeseen: "foresight", IMoved: "moves", IRenewed: "renewal",
	IPreallocated: "preallocation", IUnbound: "independence of capacity", IMetered: "metadata", IReduced: "reduction",
	IFitted:    "fit",
	IReference: "references", ILocated: "block at an address", ISpan: "span",
	IConfAnswer: "answer to settings",
}

// Name returns the invariant in a word or two.
func (n Number) Name() string {
	if n > 0 && int(n) < len(invariantNames) {
		return invariantNames[n]
	}
	return "unknown"
}

// String returns the number as documents write it: I7.
func (n Number) String() string { return "I" + strconv.Itoa(int(n)) }

// ParseNumber returns the invariant that a document writes as s, such as "I7".
func ParseNumber(s string) (Number, bool) {
	for n := range Numbers {
		if n.String() == s {
			return n, true
		}
	}
	return 0, false
}

// Numbers yields every invariant.
func Numbers(yield func(Number) bool) {
	for n := Number(1); int(n) < len(invariantNames); n++ {
		if !yield(n) {
			return
		}
	}
}

// Violation is a broken invariant.
type Violation struct {
	Number Number // which one
	Detail string // the two things that disagree
	Stack  []byte // INoPanic: where
}

func (v *Violation) Error() string {
	return fmt.Sprintf("invariant %v (%s): %s", v.Number, v.Number.Name(), v.Detail)
}

// violated returns a violation. Sizes in its text are numbers of bytes, also inside structs and
// slices.
func violated(n Number, format string, args ...any) error {
	for i, a := range args {
		args[i] = exact(a)
	}
	return &Violation{Number: n, Detail: fmt.Sprintf(format, args...)}
}

// exact returns a value that prints like v, with sizes as numbers of bytes.
func exact(v any) any {
	if n, ok := v.(device.Size); ok {
		return uint64(n)
	}
	switch v.(type) {
	case alloc.Chunk, alloc.Stats: // field by field
	case fmt.Stringer, error, []byte:
		return v
	}
	var parts []string
	switch of := reflect.ValueOf(v); of.Kind() {
	case reflect.Slice:
		for _, value := range of.Seq2() {
			parts = append(parts, fmt.Sprint(exact(value.Interface())))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.Struct:
		for field, value := range of.Fields() {
			if field.IsExported() {
				parts = append(parts, fmt.Sprintf("%s:%v", field.Name, exact(value.Interface())))
			}
		}
		return "{" + strings.Join(parts, " ") + "}"
	}
	return v
}
