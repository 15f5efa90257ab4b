// Package cli is the whole program vramyard, for a main of a few lines that brings strategies of
// its own:
//
//	func main() {
//		cli.Main(append(strategies.All(), setting.SpecOf("mine", "my allocator", mine.New))...)
//	}
//
// Every command takes the strategies that [Main] is given, and its default list is computed
// from them. Package main of cmd/vramyard lists the commands and the exit statuses.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/internal/units"
)

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1 // the command has done its work, and the answer is no
	exitTrouble = 2

	exitSome        = 3   // the work is done, and some parts of it have failed
	exitContinue    = 75  // stopped before the end: the same command continues (EX_TEMPFAIL)
	exitInterrupted = 130 // 128 and the signal, as shells have it
	exitPipe        = 141 // likewise
)

// failure is the error of a command that has done its work and found a violated condition or a
// failing trace. Any other error is trouble.
type failure struct{ error }

// Unwrap returns the error without its kind.
func (f failure) Unwrap() error { return f.error }

// withStatus is an error with an exit status of its own.
type withStatus struct {
	error
	status int
}

// Main runs the program over strategies, in the order in which they are shown, and exits with
// its status. Strategies without [setting.Lists] are in the default lists of every command. Each of
// them also exists in shards: "sharded:NAME", by [setting.Sharded].
func Main(strategies ...setting.Spec) {
	narrow()
	os.Exit(run((&interrupts{}).watch(), strategies, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, c setting.Catalogue, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	defer debug.SetMemoryLimit(userLimit) // opened files lower it
	started := false
	c = append(slices.Clip(c), setting.Sharded(c))
	root := newRoot(c, &started)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		complete(root, c, values(c)) // a map of cobra's holds these commands, and their files, until the process ends
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	p := newProgress(stderr)
	defer p.stop()
	ctx = withProgress(ctx, p)
	out, end := window(stdout, p)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if failed := end(); err == nil {
		err = failed
	}
	p.stop()
	if err == nil {
		return exitDone
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitPipe // the reader closed standard output
	}
	if errors.Is(err, context.Canceled) { // the command has no finished part
		err = interrupted("nothing is finished")
	}
	if !started { // cobra refused the command line
		err = fmt.Errorf("%s: see %q", placed(cmd, err), cmd.CommandPath()+" --help")
	}
	tell(stderr, "vramyard: %s", oneLine(advised(err)))
	if _, ok := errors.AsType[interrupted](err); ok {
		return statusOf(ctx)
	}
	return exitOf(err)
}

// exitOf returns the exit status of an error, the highest one of several joined errors.
func exitOf(err error) int {
	switch e := any(err).(type) { // each layer on its own, which errors.As would skip
	case failure:
		return exitFailed
	case withStatus:
		return e.status
	case interface{ Unwrap() []error }:
		status := exitFailed
		for _, one := range e.Unwrap() {
			status = max(status, exitOf(one))
		}
		return status
	case interface{ Unwrap() error }:
		return exitOf(e.Unwrap())
	}
	return exitTrouble
}

// placed prefixes an error of the command line with the name of the command.
func placed(cmd *cobra.Command, err error) string {
	if _, name, sub := strings.Cut(cmd.CommandPath(), " "); sub {
		return name + ": " + err.Error()
	}
	return err.Error()
}

// oneLine joins the lines of a message, so that a script reads one error as one line, and
// escapes control characters, such as in names from a file.
func oneLine(err error) string {
	var b strings.Builder
	for i, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if i > 0 {
			b.WriteString("; ")
		}
		for _, r := range line {
			if strconv.IsPrint(r) {
				b.WriteRune(r)
			} else {
				b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			}
		}
	}
	return b.String()
}

// newRoot returns the command tree over a catalogue. started is set once the command line is
// accepted.
func newRoot(c setting.Catalogue, started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "vramyard",
		Short: "A proving ground for GPU memory allocators",
		Long: `A proving ground for GPU memory allocators.

Exit status:

  0    done; a request that finds no memory is a result, not an error
  1    a condition is violated, or a trace fails where that is a condition: verify, check,
       replay --check, replay --fail-on-oom, trace info, trace diff, corpus verify, corpus lint,
       diff --fail-if, gate, sweep run, sweep merge, sweep status
  2    trouble: a bad flag, or a file that cannot be read or written
  3    sweep run: the shard is done, and cells of it have failed
  75   sweep run: stopped by SIGTERM, and the same command continues
  130  interrupted by Ctrl-C; 143 by SIGTERM. Long commands print their finished results first
  141  the reader of standard output has closed it

Statuses 1 and 2 come with one line on standard error that names the place.`,
		Version:       provenance.Read().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(unknownFlag)
	root.AddCommand(newCompare(c), newReplay(c), newVerify(c), newBench(c), newCheck(c), newWhatif(c), newFleet(c),
		newRun(c), newTop(), newTune(c), newOffline(), newRemat(c), newSweep(c), newBoard(c), newDiff(), newStats(),
		newGate(c), newPlot(c), newTrace(c), newCorpus(c), newView(c), newStrategies(c), newDevices(), newTraces(),
		newLicenses(), newVersion())
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Short = "Print a completion script for a shell"
		c.Long = "Print a completion script for a shell. The help of each subcommand says how to load it."
		c.Args, c.RunE = knownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	noteStart(root, started)
	return root
}

// newHelp returns the command help, which unlike cobra's own refuses unknown commands.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(c, rest[0])
			}
			return c.Help()
		},
	}
}

// noteStart makes every command below c set started when it runs, which is after cobra
// has judged flags and arguments, and gives errors about the number of arguments the usage line.
func noteStart(c *cobra.Command, started *bool) {
	if count := c.Args; count != nil && !c.HasSubCommands() {
		c.Args = func(cmd *cobra.Command, args []string) error {
			err := count(cmd, args)
			if err != nil && errors.Unwrap(err) == nil { // cobra's own
				err = fmt.Errorf("%s: want %q", units.Several(len(args), "argument"), cmd.UseLine())
			}
			return err
		}
	}
	if inner := c.RunE; inner != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return inner(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		noteStart(sub, started)
	}
}
