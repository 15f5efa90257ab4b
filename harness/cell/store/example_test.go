package store_test

import (
	"context"
	"fmt"
	"os"

	"github.com/vramyard/vramyard/harness/cell/store"
)

func ExampleOpen() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx := context.Background()
	s, err := store.Open(ctx, folder) // or s3://bucket/prefix
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Put(ctx, "cells/1.json", []byte("first")))
	fmt.Println(s.Put(ctx, "cells/1.json", []byte("second")))
	body, err := s.Get(ctx, "cells/1.json")
	fmt.Printf("%s %v\n", body, err)
	// Output:
	// <nil>
	// an object of this name exists
	// first <nil>
}
