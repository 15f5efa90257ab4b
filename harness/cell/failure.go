package cell

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/vramyard/vramyard/alloc/setting"
)

// Failure is an error that is the result of a cell. Every repetition has it, so its text has
// neither the name of a trace or strategy nor a place in a file.
type Failure string

func (f Failure) Error() string { return string(f) }

// Lasting reports whether an error is of the computation, so that every repetition has it, and not
// of a file, the store or the system, or the end of the context.
func Lasting(ctx context.Context, err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	_, system := errors.AsType[syscall.Errno](err)
	return err != nil && ctx.Err() == nil && !file && !system && !errors.Is(err, io.ErrUnexpectedEOF) && !OfStore(err)
}

// Foreign reports whether code outside this program decides for a setup. It may fail for reasons of
// its machine, so its failures are not results.
func Foreign(s setting.Setup) bool {
	_, ok := s.Config.(setting.ForeignConfig)
	return ok
}
