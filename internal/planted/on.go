//go:build planted

package planted

// Enabled says whether bugs can be planted.
const Enabled = true

// now is the bug that is planted, and ticks what Tick counts. They belong to the whole
// program: whoever plants a bug runs one thing at a time.
var (
	now   ID
	ticks uint64
)

// Is reports whether a bug is planted.
func Is(id ID) bool { return now == id }

// Set plants one bug in place of the one before, which [None] only takes away. It must not be
// called while a strategy is at work.
func Set(id ID) { now = id }

// Tick returns how often it was called before, by whomever: what a bug needs to depend on
// more than its own history.
func Tick() uint64 {
	ticks++
	return ticks - 1
}
