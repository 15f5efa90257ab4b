package bfc_test

import (
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/internal/script"
	"github.com/vramyard/vramyard/strategies/bfc"
)

func TestScripts(t *testing.T) { script.Run(t, alloc.SpecOf("bfc", "", bfc.New)) }
