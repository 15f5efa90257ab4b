//go:build !linux

package main

import (
	"errors"
	"os"
)

// peakResident fails: other systems count in other units, or not at all.
func peakResident(*os.ProcessState) (float64, error) {
	return 0, errors.New("the memory of a process is read on Linux only")
}
