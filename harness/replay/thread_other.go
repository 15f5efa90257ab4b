//go:build !linux

package replay

// threadTime says that this system does not tell the CPU time of a thread.
func threadTime() (int64, bool) { return 0, false }
