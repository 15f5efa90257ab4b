package view_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/view"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

func ExampleReplay() {
	tr, err := trace.Read(strings.NewReader("a 1 30MiB\na 2 3MiB\nf 1\n"), "step.trace", trace.Options{})
	if err != nil {
		panic(err)
	}
	var all []view.RunSpec
	for color, name := range []string{"bfc:growth", "caching"} {
		var setup setting.Setup
		if setup, err = strategies.All().Lookup(name, nil); err != nil {
			panic(err)
		}
		all = append(all, view.RunSpec{Setup: setup, Color: color})
	}
	dir, err := os.MkdirTemp("", "view")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	progress := view.NewProgress(func(string, int, int) {})
	r, err := view.Replay(context.Background(), tr, all, replay.AtCompleted, dir, progress)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for _, run := range r.Runs {
		fmt.Println(run.Picture.Strategy, run.Picture.Result.Peak.Reserved)
	}
	// Output:
	// bfc:growth 64MiB
	// caching 50MiB
}
