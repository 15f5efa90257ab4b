package stalloc_test

import (
	"testing"

	"github.com/vramyard/vramyard/props/propstest"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, append(subjects(), unchecked())...) }
