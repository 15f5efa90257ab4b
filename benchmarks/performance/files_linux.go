package main

import (
	"errors"
	"os"
	"syscall"
)

// peakResident returns the most bytes that an ended process had in memory.
func peakResident(p *os.ProcessState) (float64, error) {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("the system reports no use of memory")
	}
	return float64(u.Maxrss) * 1024, nil // Linux counts KiB
}
