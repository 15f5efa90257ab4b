//go:build !planted

package planted

// Enabled says whether bugs can be planted.
const Enabled = false

// Is reports whether a bug is planted. In this build none ever is.
func Is(ID) bool { return false }

// Set plants one bug in place of the one before. In this build it does nothing.
func Set(ID) {}

// Tick returns how often it was called before. In this build it returns zero.
func Tick() uint64 { return 0 }
