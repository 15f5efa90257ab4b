package planted

// ID names a bug: a package, a slash, and a name in that package.
type ID string

// None is the name of no bug.
const None ID = ""

// now is the bug that is planted, and ticks the count of [Tick]. Both belong to the whole
// program, which must run one search at a time.
var (
	now   ID
	ticks uint64
)

// Is reports whether a bug is planted.
func Is(id ID) bool { return now == id }

// Set plants a bug, which replaces the current one; [None] only removes it. It must not be
// called while a strategy is in use. Unless bugs are [Enabled] it does nothing.
func Set(id ID) {
	if Enabled {
		now = id
	}
}

// Tick returns the number of its calls before. A bug uses it to depend on state outside of its own
// history.
func Tick() uint64 {
	ticks++
	return ticks - 1
}
