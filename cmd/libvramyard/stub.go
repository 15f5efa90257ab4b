//go:build !cgo || !linux

package main

import (
	"fmt"
	"os"
)

// main prints the requirements.
func main() {
	fmt.Fprintln(os.Stderr, "libvramyard: needs Linux, cgo and a C++ compiler: go build -buildmode=c-shared -o "+
		"libvramyard.so ./cmd/libvramyard")
	os.Exit(1)
}
