// Command lifetimes is the program vramyard with one more strategy, which learns from the trace of
// an earlier run how long blocks live.
//
//	lifetimes compare --strategies bfc,lifetimes --learn train.csv test.csv
package main

import (
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/cli"
	"github.com/vramyard/vramyard/strategies"
)

var spec = setting.SpecOf("lifetimes", "two-ended arena that learns lifetimes", New)

func main() { cli.Main(append(strategies.All(), spec)...) }
