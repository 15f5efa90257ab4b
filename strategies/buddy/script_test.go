package buddy_test

import (
	"testing"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/internal/script"
	"github.com/vramyard/vramyard/strategies/buddy"
)

func TestScripts(t *testing.T) { script.Run(t, setting.SpecOf("buddy", "", buddy.New)) }
