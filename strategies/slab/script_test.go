package slab_test

import (
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/internal/script"
	"github.com/vramyard/vramyard/strategies/slab"
)

func TestScripts(t *testing.T) { script.Run(t, alloc.SpecOf("slab", "", slab.New)) }
