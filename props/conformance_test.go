package props_test

import (
	"testing"

	"github.com/vramyard/vramyard/props/propstest"
)

// FuzzFirstFit shows the fuzzer on the strategy of these tests.
func FuzzFirstFit(f *testing.F) { propstest.Fuzz(f, firstFitSubject(none)) }
