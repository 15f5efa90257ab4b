package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/internal/outfile"
)

// interrupts are the signals that end the program. A command that can end with what it has finished
// listens for the first; the second ends it at once, as does the first where none listens, and SIGTERM.
// Either way what is half written goes away, and the exit status is that of a shell, 128 and the signal.
type interrupts struct {
	lock sync.Mutex
	stop chan struct{} // nil if no command listens
}

// interruptsKey finds the interrupts in the context of a command.
type interruptsKey struct{}

// watch begins to watch for signals. It returns the context that commands find them by.
func (i *interrupts) watch() context.Context {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == os.Interrupt && i.tell() {
				fmt.Fprintln(os.Stderr, "\nvramyard: ending with what is finished; interrupt again to end at once")
				continue
			}
			outfile.RemoveUnfinished()
			n, _ := s.(syscall.Signal) // the two asked for are
			os.Exit(128 + int(n))
		}
	}()
	return context.WithValue(context.Background(), interruptsKey{}, i)
}

// tell tells the command that listens. It reports whether there is one that was not told before.
func (i *interrupts) tell() bool {
	i.lock.Lock()
	defer i.lock.Unlock()
	if i.stop == nil {
		return false
	}
	close(i.stop)
	i.stop = nil
	return true
}

// untilInterrupt returns a channel that the first interrupt closes until done is called.
func untilInterrupt(cmd *cobra.Command) (stop <-chan struct{}, done func()) {
	i, ok := cmd.Context().Value(interruptsKey{}).(*interrupts)
	if !ok {
		return nil, func() {}
	}
	c := make(chan struct{})
	i.lock.Lock()
	i.stop = c
	i.lock.Unlock()
	return c, func() {
		i.lock.Lock()
		i.stop = nil
		i.lock.Unlock()
	}
}

// interrupted is the end of a command that was interrupted, and what it has finished.
type interrupted string

// Error implements error.
func (e interrupted) Error() string { return "interrupted: " + string(e) + "; no file is written" }

// finished shows what is finished of an interrupted command, unless standard output is for something else.
func finished(stdout io.Writer, taken bool, what string, show func(io.Writer) error) error {
	if !taken {
		if err := outfile.Write("-", stdout, show); err != nil {
			return err
		}
	}
	return interrupted(what)
}
