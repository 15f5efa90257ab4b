package cli_test

import (
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/cli"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/direct"
)

// The whole program with one more strategy. "compare" without --strategies compares it too.
func ExampleMain() {
	cli.Main(append(strategies.All(), setting.SpecOf("mine", "one device call for each block", direct.New))...)
}
