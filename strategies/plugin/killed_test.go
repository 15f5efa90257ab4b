//go:build linux

package plugin_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device/sim"
)

// family returns the process that the instances of a plug-in are forked from, and theirs.
func family(t *testing.T, path string) (host int, instances []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	parents := map[int]int{}
	for _, dir := range all {
		words, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.Contains(string(words), path) { // it may have ended since
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // of the name, which may hold anything
		pid, err := strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		parent, err := strconv.Atoi(strings.Fields(rest)[1])
		require.NoError(t, err)
		parents[pid] = parent
	}
	for pid, parent := range parents {
		if _, ok := parents[parent]; ok {
			instances = append(instances, pid)
		} else {
			host = pid
		}
	}
	require.NotZero(t, host)
	return host, instances
}

// TestKilledOrStoppedProcessIsNamed sends signals to an instance, and to the host that it was
// forked from.
func TestKilledOrStoppedProcessIsNamed(t *testing.T) {
	t.Parallel()
	path := object(t, "faults.c")
	const query = "alloc=direct_alloc&free=direct_free&timeout=3s"
	one := alloc.Request{Size: 1}
	for _, c := range []struct {
		signal unix.Signal
		host   bool
		want   string
	}{
		{unix.SIGKILL, false, "plugin: call 2, direct_alloc(1 bytes, device 0, stream 0): killed by SIGKILL"},
		{unix.SIGSTOP, false, "plugin: call 2, direct_alloc(1 bytes, device 0, stream 0): it did not return within 3s"},
		{unix.SIGKILL, true, "plugin: call 2, direct_alloc(1 bytes, device 0, stream 0): the host program has ended"},
	} {
		s, _ := started(t, path, query)
		_, err := s.Alloc(one)
		require.NoError(t, err)
		host, instances := family(t, path)
		require.Len(t, instances, 1)
		victim := instances[0]
		if c.host {
			victim = host
		}
		require.NoError(t, unix.Kill(victim, c.signal))
		if c.host { // its instances end after it
			require.Eventually(t, func() bool { return processes(t, path) == 0 }, time.Minute, time.Millisecond)
		}
		_, err = s.Alloc(one)
		require.EqualError(t, err, c.want)
		require.EqualError(t, s.Free(1), c.want, "again")
		require.NoError(t, s.Close())
	}
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = named(t, path, query).New(dev)
	require.EqualError(t, err, "plugin: the host program has ended: broken pipe")
	s, _ := started(t, path, query) // by another one
	_, err = s.Alloc(one)
	require.NoError(t, err)
}
