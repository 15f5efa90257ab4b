package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/internal/fileio"
)

// interrupts handles SIGINT (Ctrl-C) and SIGTERM. A command that can print partial results listens
// for the first signal; the second one ends it at once, and so does the first one without a
// listener. Partially written files are removed, and the exit status is 128 plus the signal, as in
// a shell.
type interrupts struct {
	lock     sync.Mutex
	stop     context.CancelFunc // nil if no command listens
	signal   syscall.Signal     // delivered to a command
	progress *progress
}

// interruptsKey finds the interrupts in the context of a command.
type interruptsKey struct{}

// watch begins to watch for signals. It returns a context through which commands find i.
func (i *interrupts) watch() context.Context {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// The reader of standard output may close it early. The write then fails with EPIPE and partial
	// files are removed; the signal would kill the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for s := range signals {
			n, _ := s.(syscall.Signal) // both signals have this type
			i.lock.Lock()
			p := i.progress
			i.lock.Unlock()
			p.interject(func() { i.handle(n) })
		}
	}()
	return context.WithValue(context.Background(), interruptsKey{}, i)
}

// handle notifies the command, or ends the program.
func (i *interrupts) handle(n syscall.Signal) {
	if i.notify(n) {
		tell(os.Stderr, "vramyard: ending with partial results; interrupt again to end at once")
		return
	}
	fileio.RemoveUnfinished()
	tell(os.Stderr, "vramyard: interrupted")
	os.Exit(128 + int(n))
}

// wipes sets the progress whose line a signal wipes.
func (i *interrupts) wipes(p *progress) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.progress = p
}

// notify notifies the listening command. It returns false if no command listens or it was notified
// before.
func (i *interrupts) notify(n syscall.Signal) bool {
	i.lock.Lock()
	defer i.lock.Unlock()
	if i.stop == nil {
		return false
	}
	i.stop()
	i.stop, i.signal = nil, n
	return true
}

// untilInterrupt returns a context that the first interrupt cancels, until done is called.
func untilInterrupt(cmd *cobra.Command) (ctx context.Context, done func()) {
	ctx, stop := context.WithCancel(cmd.Context())
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return ctx, stop
	}
	listen := func(f context.CancelFunc) {
		i.lock.Lock()
		defer i.lock.Unlock()
		i.stop = f
	}
	listen(stop)
	return ctx, func() {
		listen(nil)
		stop()
	}
}

// statusOf returns the exit status of a command that was interrupted.
func statusOf(ctx context.Context) int {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return exitInterrupted
	}
	i.lock.Lock()
	defer i.lock.Unlock()
	return 128 + int(cmp.Or(i.signal, syscall.SIGINT))
}

// interrupted is the error of an interrupted command, with a description of the finished part.
type interrupted string

func (e interrupted) Error() string { return "interrupted: " + string(e) + "; no file is written" }
