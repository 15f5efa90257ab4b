package direct

import "github.com/vramyard/vramyard/alloc"

// Promises implements [alloc.Promiser]. The size of a block is the device's choice.
func (Config) Promises() alloc.Promises {
	return alloc.Promises{
		Honours:      func(alloc.Request) bool { return true },
		FreeReleases: true,
	}
}
