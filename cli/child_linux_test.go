package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props/planted"
)

// standInGo is a Go toolchain whose builds are a script that says its process, and either ends when
// it is interrupted or never does.
const standInGo = `#!/bin/sh
case "$1" in
env) echo "$STAND_IN_MOD" ;;
build)
	printf '#!/bin/sh\ntrap "%s" INT\necho process $$\nwhile :; do sleep 0.05; done\n' "$STAND_IN_TRAP" >"$5"
	chmod +x "$5"
	;;
esac
`

// plantedParent starts check --planted with a stand-in child, and returns the command, what the
// child prints, and the process of the child.
func plantedParent(t *testing.T, trap string) (c *exec.Cmd, said *bufio.Reader, child int) {
	t.Helper()
	if planted.Enabled {
		t.Skip("needs a build without planted bugs")
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go"), []byte(standInGo), 0o755))
	mod := filepath.Join(folder, "go.mod")
	require.NoError(t, os.WriteFile(mod, []byte("module "+module+"\n"), 0o644))
	exe, err := os.Executable()
	require.NoError(t, err)
	c = exec.CommandContext(t.Context(), exe, "check", "--planted")
	c.Env = append(os.Environ(), asCommand+"=quiet", "PATH="+folder+":"+os.Getenv("PATH"), "TMPDIR="+folder,
		"STAND_IN_MOD="+mod, "STAND_IN_TRAP="+trap)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said = bufio.NewReader(out)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	child, err = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "process ")))
	require.NoError(t, err)
	return c, said, child
}

// ended is the status of a process that has ended, which its parent has not asked for yet. In a
// container the first process may never do so.
var ended = regexp.MustCompile(`^\d+ \(.*\) Z `)

// gone reports whether a process ends soon.
func gone(process int) bool {
	for range 500 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
		if err != nil || ended.Match(status) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// TestPlantedPassesSignalsOn asks the command to end: the build with the bugs is interrupted, and
// shows what it has finished.
func TestPlantedPassesSignalsOn(t *testing.T) {
	c, said, child := plantedParent(t, "echo partial; exit 130")
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "partial\n", line)
	_ = c.Wait()
	assert.Equal(t, 143, c.ProcessState.ExitCode())
	assert.True(t, gone(child))
}

// TestPlantedLeavesNothingRunning kills the command. The build with the bugs is gone with it, also
// one that does not listen.
func TestPlantedLeavesNothingRunning(t *testing.T) {
	c, _, child := plantedParent(t, "")
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	assert.True(t, gone(child))
}
