// Command newstrategy is the program vramyard with one more strategy, a first fit of sixty lines.
// docs/first-strategy.md describes how it was written.
//
//	newstrategy compare --strategies bfc,firstfit cpu_unet_train    memory and time of both
//	newstrategy replay --strategy firstfit --placements - TRACE     the address of each block
//	newstrategy check --strategies firstfit                         the property suite
package main

import (
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/cli"
	"github.com/vramyard/vramyard/strategies"
)

func main() {
	cli.Main(append(strategies.All(), setting.SpecOf("firstfit", "lowest address that fits", New))...)
}
