package recall_test

import (
	"testing"

	"github.com/vramyard/vramyard/props/propstest"
)

func TestMetamorphic(t *testing.T) { propstest.RunMetamorphic(t, subjects()...) }
