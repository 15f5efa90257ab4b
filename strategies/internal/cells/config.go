package cells

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// The values of Config.Selection: which slab with a free slot a request is served from.
const (
	Fullest  = "fullest"  // the one with the fewest free slots, so that the others drain
	Emptiest = "emptiest" // the one with the most
	Lifo     = "lifo"     // most recently available slab first
	Fifo     = "fifo"     // least recently available slab first
	Lowest   = "lowest"   // the one at the lowest address
)

// MostSlots bounds the slots of a slab: one word that sums up 64 words. Finding a free slot reads
// two words.
const MostSlots = 64 * 64

// MostClasses bounds the classes, each of which has a record in every segment.
const MostClasses = 1 << 12

// MostQuanta bounds the largest class, in quanta: a table has two bytes of host memory for
// each.
const MostQuanta = 1 << 22

// Class is one size class of [Engine]. Sizes are bytes.
type Class struct {
	Slot  device.Size // bytes of a slot, granted to a request of the class
	Slab  device.Size // bytes of a slab, obtained from the parent
	Align device.Size // of the start of every slab of the class, a power of two
}

func (k Class) slots() device.Size { return k.Slab / k.Slot }

// Piece is the memory of one slab.
type Piece struct {
	Addr   device.Addr // first byte, at a multiple of the class's Align
	Handle uint32      // number of the parent's choice, returned with the piece
}

// Parent gives [Engine] the memory of slabs.
type Parent interface {
	// Take returns Class.Slab bytes for a slab of the class, or false. The number identifies the slab
	// from then on. Without more the parent only uses memory that it holds; with more it may request
	// memory from its own source, and records the error for the strategy that composes it with the
	// cells.
	Take(class int, slab int32, more bool) (Piece, bool)
	// Give takes back the piece of a slab of a class.
	Give(class int, p Piece)
}

// Config describes [Engine].
type Config struct {
	Quantum    device.Size // sizes of slots are multiples of it; a power of two
	Classes    []Class     // ascending by Slot
	Selection  string      // which slab serves first; one of the selections, Fullest if empty
	EmptySlabs int         // slabs without a used slot that each class of a segment keeps
	Segments   int         // number of segments, which share no slab unless Steal is set; at least 1
	RoundRobin bool        // segments take turns instead of belonging to streams
	Steal      bool        // a segment may take slots of another before a new region is reserved
	Rounds     int         // slots in a magazine; 0 for no magazines
	Depot      int         // full magazines that a class keeps beside those in use
	Interval   int         // calls after which a depot returns the magazines that it did not need; 4096 if zero
}

// None stands for no slab.
const None = -1

// MostSegments bounds the segments, whose stocks are made at once.
const MostSegments = 1 << 12

// Check returns an error that names the first bad field.
func (c Config) Check() error {
	switch {
	case !device.IsPowerOfTwo(c.Quantum):
		return fmt.Errorf("slab: quantum %d: want a power of two", uint64(c.Quantum))
	case len(c.Classes) == 0 || len(c.Classes) > MostClasses:
		return fmt.Errorf("slab: classes: %d of them: want 1 to %d", len(c.Classes), MostClasses)
	case c.Segments < 1 || c.Segments > MostSegments:
		return fmt.Errorf("slab: segments %d: want 1 to %d", c.Segments, MostSegments)
	}
	for i, k := range c.Classes {
		switch {
		case k.Slot == 0 || k.Slot%c.Quantum != 0 || i > 0 && k.Slot <= c.Classes[i-1].Slot:
			return fmt.Errorf("slab: class of %d bytes: want ascending multiples of %d", uint64(k.Slot), uint64(c.Quantum))
		case k.Slot > k.Slab || k.slots() > MostSlots:
			return fmt.Errorf("slab: class of %d bytes: want 1 to %d slots in %d bytes", uint64(k.Slot), MostSlots,
				uint64(k.Slab))
		}
	}
	switch c.Selection {
	case "", Fullest, Emptiest, Lifo, Fifo, Lowest:
		return nil
	}
	return fmt.Errorf("slab: selection %q: want %q, %q, %q, %q or %q", c.Selection, Fullest, Emptiest, Lifo, Fifo, Lowest)
}
