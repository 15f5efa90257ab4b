package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asCommand is the variable that makes this program the command, so that signals reach it. As
// "quiet" it does not say when it listens.
const asCommand = "VRAMYARD_TEST_COMMAND"

// TestMain runs the tests, or the command, which then says when it listens.
func TestMain(m *testing.M) {
	narrow()
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	i := &interrupts{}
	ctx := i.watch()
	go func() {
		if os.Getenv(asCommand) == "quiet" {
			return
		}
		for listening := false; !listening; time.Sleep(time.Millisecond) {
			i.lock.Lock()
			listening = i.stop != nil
			i.lock.Unlock()
		}
		time.Sleep(300 * time.Millisecond) // so that there is most often something to show; no test counts on it
		fmt.Fprintln(os.Stderr, "listening")
	}()
	os.Exit(run(ctx, everything, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// interruptedBy runs a command in a process of its own and sends it signals: when it listens, and
// when it has said that it ends.
func interruptedBy(t *testing.T, signals []os.Signal, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Dir = t.TempDir()
	var out bytes.Buffer
	c.Stdout = &out
	pipe, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	r := bufio.NewReader(pipe)
	var said strings.Builder
	for i, word := range []string{"listening", "interrupt again"}[:len(signals)] {
		for line := ""; !strings.Contains(line, word); said.WriteString(line) {
			line, err = r.ReadString('\n')
			require.NoError(t, err, said.String()+line)
		}
		require.NoError(t, c.Process.Signal(signals[i]))
	}
	_, err = io.Copy(&said, r)
	require.NoError(t, err)
	exit, ok := errors.AsType[*exec.ExitError](c.Wait())
	require.True(t, ok, "the command ends with a status: %s", said.String())
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is half written")
	return exit.ExitCode(), out.String(), said.String()
}

func TestAnInterruptShowsWhatIsFinished(t *testing.T) {
	status, out, errs := interruptedBy(t, once, "check", "--strategies", "bfc,buddy", "--tests", "100000")
	assert.Equal(t, 130, status)
	assert.Contains(t, errs, "vramyard: interrupted: ")
	assert.Equal(t, strings.Contains(errs, "subjects were begun"), strings.Contains(out, "│ held"))
	assert.Equal(t, strings.Contains(errs, "subjects were begun"), strings.HasPrefix(out, "partial: "))
}

// once is one Ctrl-C.
var once = []os.Signal{os.Interrupt}

func TestInterruptedSearchesShowWhatIsEvaluated(t *testing.T) {
	for shown, args := range map[string][]string{
		"points evaluated": {"tune", "--strategy", "slab", "--json", "x.json"},
		"settings tried": {"whatif", "--grid", "full", "--json", "x.json", "--csv", "x.csv", "--html", "x.html",
			"cpu_gpt2_train_varlen"},
		"the search of the las": {"offline", "--steps", "1000000000000", "--json", "x.json"},
	} {
		status, out, errs := interruptedBy(t, once, args...)
		assert.Equal(t, 130, status, shown)
		assert.Contains(t, errs, "vramyard: interrupted: ")
		assert.Equal(t, strings.Contains(errs, shown), strings.HasPrefix(out, "partial: "), errs)
	}
}

func TestARequestToEndIsLikeAnInterrupt(t *testing.T) {
	status, _, errs := interruptedBy(t, []os.Signal{syscall.SIGTERM}, "bench", "--json", "x.json", "--html", "x.html",
		"--cpuprofile", "x.pprof")
	assert.Equal(t, 143, status)
	assert.Contains(t, errs, "; no file is written\n")
}

func TestAClosedPipeEndsSilently(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, "trace", "gen", "w1", "-")
	c.Env = append(os.Environ(), asCommand+"=quiet")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, out.Close())
	exit, ok := errors.AsType[*exec.ExitError](c.Wait())
	require.True(t, ok)
	assert.Equal(t, exitPipe, exit.ExitCode())
	assert.Empty(t, errs.String())
}

func TestAnInterruptedComparisonWritesNoFile(t *testing.T) {
	status, out, errs := interruptedBy(t, once, "compare", "--json", "x.json", "--csv", "x.csv", "--html", "x.html")
	assert.Equal(t, 130, status)
	assert.Contains(t, errs, "; no file is written\n")
	assert.Equal(t, strings.Contains(errs, "runs are finished"), strings.Contains(out, "lower bound"))
}

func TestTheSecondInterruptEndsAtOnce(t *testing.T) {
	// a batch takes a minute
	status, out, errs := interruptedBy(t, []os.Signal{os.Interrupt, os.Interrupt}, "check", "--strategies", "bfc",
		"--tests", "100000000")
	assert.Equal(t, 130, status)
	assert.Empty(t, out)
	assert.Contains(t, errs, "interrupt again to end at once")
}
