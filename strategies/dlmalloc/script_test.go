package dlmalloc_test

import (
	"testing"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/internal/script"
	"github.com/vramyard/vramyard/strategies/dlmalloc"
)

func TestScripts(t *testing.T) { script.Run(t, setting.SpecOf("dlmalloc", "", dlmalloc.New)) }
