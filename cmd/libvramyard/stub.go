//go:build !cgo || !linux

package main

import (
	"fmt"
	"os"
)

// main says what is missing.
func main() {
	fmt.Fprintln(os.Stderr, "libvramyard: needs Linux, cgo and a C++ compiler: go build -buildmode=c-shared -o "+
		"libvramyard.so ./cmd/libvramyard")
	os.Exit(1)
}
