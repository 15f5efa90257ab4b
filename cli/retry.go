package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// addRetry adds the flags of threads that wait.
func (f *replayFlags) addRetry(c *cobra.Command) {
	c.Flags().DurationVar(&f.retry, "retry", 0,
		"replay once more with threads that wait at most this long for memory, such as 10s, TensorFlow's default")
	c.Flags().IntVar(&f.threads, "threads", 0, "with --retry: fold the trace's threads to this number; 0 keeps them")
}

func (f *replayFlags) judgeRetry() error {
	switch {
	case f.retry < 0:
		return flagError("retry", fmt.Errorf("%v: want a time of at least 0", f.retry))
	case f.threads < 0:
		return flagError("threads", fmt.Errorf("%d: want a number from 0 on", f.threads))
	case f.threads > 0 && f.retry == 0:
		return flagError("threads", errors.New("needs --retry"))
	}
	return nil
}

// waitFor replays with threads that wait, if --retry asks for it.
func (f *replayFlags) waitFor(t trace.Source, setup setting.Setup, cfg sim.Config) error {
	if f.retry == 0 {
		return nil
	}
	dev, err := sim.New(cfg)
	if err != nil {
		return err
	}
	f.waits, err = replay.RunWaiting(t.(*trace.Trace), setup, dev, f.retry, f.threads) // open has read all of it
	return flagError("retry", err)
}

// writeWaits says what waiting changed.
func writeWaits(w io.Writer, r *replay.Waits) error {
	_, err := fmt.Fprintf(w, "waiting up to %v, %s: %s found no memory at first, %d granted in the end, %d refused\n",
		r.Limit, units.Several(r.Threads, "thread"), units.Several(int(r.Waited), "request"), r.Served, r.Refused)
	if err == nil && r.Waited > 0 && r.Timed {
		_, err = fmt.Fprintf(w, "they waited %v in all, the longest %v\n", time.Duration(r.Delay), time.Duration(r.Longest))
	}
	if err == nil && !r.Timed {
		_, err = fmt.Fprintln(w, "the trace has no times: a request waits until no other thread can free memory")
	}
	return err
}
