//go:build !(nvml && cgo && linux)

package nvml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device/nvml"
)

// TestWithoutTheLibrary opens it in a program that was built without it.
func TestWithoutTheLibrary(t *testing.T) {
	if _, err := nvml.Open(); !errors.Is(err, nvml.ErrUnavailable) || !strings.Contains(err.Error(), "-tags nvml") {
		t.Errorf("%v, want ErrUnavailable and how to build it in", err)
	}
}
