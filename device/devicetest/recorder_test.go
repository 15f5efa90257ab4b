package devicetest_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/vramyard/vramyard/device/devicetest"
)

// recorder is a test that records the errors that a check reports.
type recorder struct {
	testing.TB
	errors  []string
	skipped bool
}

func (r *recorder) Helper()             {}
func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Failed() bool        { return len(r.errors) > 0 }

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Skipf(string, ...any) {
	r.skipped = true
	runtime.Goexit()
}

func (r *recorder) Skip(...any) { r.Skipf("") }

// runCheck runs one check and returns the recorder with its errors.
func runCheck(t testing.TB, check func(testing.TB, devicetest.Maker), open devicetest.Maker) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // which the check may end
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		check(r, open)
	}()
	<-done
	return r
}
