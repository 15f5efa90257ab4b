package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asCommand is the variable that makes this program the command, so that signals reach it.
const asCommand = "VRAMYARD_TEST_COMMAND"

// TestMain runs the tests, or the command, which then says when it listens.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	i := &interrupts{}
	ctx := i.watch()
	go func() {
		for listening := false; !listening; time.Sleep(time.Millisecond) {
			i.lock.Lock()
			listening = i.stop != nil
			i.lock.Unlock()
		}
		time.Sleep(300 * time.Millisecond) // so that there is most often something to show; no test counts on it
		fmt.Fprintln(os.Stderr, "listening")
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// interruptedBy runs a command in a process of its own and interrupts it so many times: when it listens, and
// when it has said that it ends.
func interruptedBy(t *testing.T, times int, args ...string) (status int, stdout, stderr string) {
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
	for _, word := range []string{"listening", "interrupt again"}[:times] {
		for line := ""; !strings.Contains(line, word); said.WriteString(line) {
			line, err = r.ReadString('\n')
			require.NoError(t, err, said.String()+line)
		}
		require.NoError(t, c.Process.Signal(os.Interrupt))
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
	status, out, errs := interruptedBy(t, 1, "check", "--strategies", "bfc,buddy", "--tests", "100000")
	assert.Equal(t, 130, status)
	assert.Contains(t, errs, "vramyard: interrupted: ")
	assert.Equal(t, strings.Contains(errs, "subjects are begun"), strings.Contains(out, "│ held"))
}

func TestAnInterruptedComparisonWritesNoFile(t *testing.T) {
	status, out, errs := interruptedBy(t, 1, "compare", "--json", "x.json", "--csv", "x.csv", "--html", "x.html")
	assert.Equal(t, 130, status)
	assert.Contains(t, errs, "; no file is written\n")
	assert.Equal(t, strings.Contains(errs, "runs are finished"), strings.Contains(out, "lower bound"))
}

func TestTheSecondInterruptEndsAtOnce(t *testing.T) {
	status, out, errs := interruptedBy(t, 2, "check", "--strategies", "bfc", "--tests", "100000000") // a batch takes a minute
	assert.Equal(t, 130, status)
	assert.Empty(t, out)
	assert.Contains(t, errs, "interrupt again to end at once")
}
