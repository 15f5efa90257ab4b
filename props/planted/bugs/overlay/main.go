package main

import (
	"fmt"
	"os"

	"github.com/vramyard/vramyard/props/planted/bugs"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./props/planted/bugs/overlay FOLDER [STRATEGY...]")
		os.Exit(2)
	}
	if err := bugs.Overlay(".", os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
