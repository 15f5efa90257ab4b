// Command external is the program vramyard with one more strategy, from a module of its own: a pool
// of equal pages, compared with the strategies of the project.
//
//	external compare TRACE
package main

import (
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/cli"
	"github.com/vramyard/vramyard/strategies"
)

func main() {
	cli.Main(append(strategies.All(), setting.SpecOf("pages", "equal pages", New,
		setting.Preset{Doc: "pages of 64 KiB"},
		setting.Preset{Name: "2m", Doc: "pages of 2 MiB", JSON: `{"page":"2MiB"}`}))...)
}
