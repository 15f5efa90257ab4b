// Command gpu runs the measurements and tests that need a GPU, in ten minutes.
//
//	gpu build DIR                    build a bundle with everything for a run, for machines without Go
//	gpu run [flags]                  run the bundle beside the program and write the results
//	gpu publish [DIR...]             add results of runs to the repository, and regenerate the derived files
//
// The parts of a run, each with its share of the time, in separate processes so that a crash of
// one does not end the others:
//
//	suite        the conformance suite of devices on the first GPU
//	timing       every call of the driver, by size
//	conformance  every strategy, by "vramyard check --device cuda:0"
//	training     a model trained by PyTorch on each strategy: the losses, and memory that is used after it was freed
//	snapshots    PyTorch's memory snapshots of two trainings and of inference
//
// Exit status: 0 if every part ran and passed, else 1. See docs/gpu.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/vramyard/vramyard/device"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// command executes a command line and returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdout)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errParts): // the summary lists the parts
	default:
		fmt.Fprintln(stderr, "gpu:", err)
	}
	return 1
}

// errUsage lists the commands.
var errUsage = errors.New("want gpu build DIR, gpu run [flags], or gpu publish [DIR...]")

func dispatch(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	rest := args[1:]
	switch args[0] {
	case "build":
		if len(rest) != 1 {
			return errors.New("build: want the directory of the bundle")
		}
		return build(ctx, ".", rest[0], stdout)
	case "run":
		return runCommand(ctx, rest, stdout)
	case "publish":
		return publish(".", rest, stdout)
	case timeCommand: // run starts it
		return timeAll(rest)
	}
	return fmt.Errorf("%q: %w", args[0], errUsage)
}

func runCommand(ctx context.Context, args []string, stdout io.Writer) error {
	o := options{log: stdout, now: time.Now, largest: 8 * device.GiB}
	fl := flag.NewFlagSet("run", flag.ContinueOnError)
	fl.SetOutput(io.Discard) // an error is one line; help is printed below
	fl.StringVar(&o.bundle, "bundle", "", "bundle `directory` from build; default the program's own")
	fl.StringVar(&o.out, "out", "gpu-results", "`directory` for the results, new or empty")
	fl.StringVar(&o.python, "python", "python3", "`interpreter` that has PyTorch")
	fl.DurationVar(&o.limit, "limit", 9*time.Minute+30*time.Second, "`time` limit of the whole run")
	fl.Func("largest", "largest `size` of timed calls, default 8GiB; never more than an eighth of the free memory",
		func(text string) (err error) { o.largest, err = device.ParseSize(text); return err })
	fl.IntVar(&o.steps, "steps", 20, "steps of the training")
	fl.IntVar(&o.tests, "tests", 500, "most sequences of calls for each strategy, if there is time for them")
	if err := fl.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fl.SetOutput(stdout)
			fmt.Fprintln(stdout, "gpu run [flags]")
			fl.PrintDefaults()
		}
		return err
	}
	switch {
	case fl.NArg() > 0:
		return fmt.Errorf("run: %q: want flags only", fl.Arg(0))
	case o.limit < time.Second:
		return errors.New("run: --limit: want at least 1s")
	case o.steps < 1 || o.steps > 1000:
		return errors.New("run: --steps: want 1 to 1000")
	case o.tests < 1 || o.tests > 1_000_000:
		return errors.New("run: --tests: want 1 to 1000000")
	}
	return run(ctx, o)
}
