//go:build !linux || !amd64

package main

import "errors"

var errNoStepping = errors.New("stepping through instructions is written for Linux on amd64")

// threadID is not used on this platform.
func threadID() int { return 0 }

// stepThrough returns an error: stepping is not supported on this platform.
func stepThrough(string, int) (*linesSeen, error) { return nil, errNoStepping }
