package bfc_test

import (
	"testing"

	"github.com/vramyard/vramyard/props/propstest"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestSubjectsTurnEveryKnob(t *testing.T) { propstest.EveryKnob(t, subjects()...) }
