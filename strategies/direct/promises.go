package direct

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
)

// Promises implements [promise.Promiser]. The size of a block is the device's choice.
func (Config) Promises() promise.Set {
	return promise.Set{
		Honours:      func(alloc.Request) bool { return true },
		FreeReleases: true,
	}
}
