package main

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// catalogue is what command lines name strategies out of: ours, and shared objects of others.
func catalogue() alloc.Catalogue { return append(strategies.All(), plugin.Spec()) }
