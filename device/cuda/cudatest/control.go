//go:build linux

package cudatest

import (
	"testing"

	"github.com/ebitengine/purego"
)

// Control controls a stand-in loaded by this process.
type Control struct {
	t         testing.TB
	complaint func() string
	fail      func(name string, nth, code, count int)
	calls     func(name string) int
	left      func() int
	capture   func(on int)
	lost      func() int
	mode      func() int
}

// Steer returns the control of the stand-in at a path. The test fails if at its end the stand-in
// has recorded calls that violate the driver's documentation.
func Steer(t testing.TB, path string) *Control {
	t.Helper()
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	c := &Control{t: t}
	purego.RegisterLibFunc(&c.complaint, library, "standin_complaint")
	purego.RegisterLibFunc(&c.fail, library, "standin_fail")
	purego.RegisterLibFunc(&c.calls, library, "standin_calls")
	purego.RegisterLibFunc(&c.left, library, "standin_left")
	purego.RegisterLibFunc(&c.capture, library, "standin_capture")
	purego.RegisterLibFunc(&c.lost, library, "standin_lost")
	purego.RegisterLibFunc(&c.mode, library, "standin_mode")
	t.Cleanup(func() {
		if text := c.complaint(); text != "" {
			t.Errorf("the stand-in for the driver complains: %s", text)
		}
	})
	return c
}

// Fail makes the n-th call of a function from now on, and count-1 calls after it, return a code.
func (c *Control) Fail(function string, nth, code, count int) { c.fail(function, nth, code, count) }

// Calls returns how often a function was called.
func (c *Control) Calls(function string) int { return c.calls(function) }

// Left returns the number of objects held: allocations, ranges, mappings, handles, contexts.
func (c *Control) Left() int { return c.left() }

// Capture begins or ends the capture of a graph in the global mode, the default. During the
// capture, unsafe calls fail on every thread that is not in relaxed mode, and the capture is lost.
func (c *Control) Capture(on bool) {
	n := 0
	if on {
		n = 1
	}
	c.capture(n)
}

// Lost returns how many captures were lost.
func (c *Control) Lost() int { return c.lost() }

// Mode returns the capture mode of the calling thread: 0 is global, 2 relaxed.
func (c *Control) Mode() int { return c.mode() }
