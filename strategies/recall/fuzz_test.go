package recall_test

import (
	"testing"

	"github.com/vramyard/vramyard/props/propstest"
)

func FuzzConformance(f *testing.F) { propstest.FuzzEach(f, subjects()...) }
