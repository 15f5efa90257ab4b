//go:build !linux

package replay

// threadTime returns false: the CPU time of a thread is unknown on this system.
func threadTime() (int64, bool) { return 0, false }
