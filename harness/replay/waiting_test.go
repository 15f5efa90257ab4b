package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// waits replays lines of a trace through bfc with a limit of 16 KiB and threads that wait.
func waits(t *testing.T, lines string, limit time.Duration, n int) (*replay.Waits, error) {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(lines), "t", trace.Options{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bfc", []byte(`{"limit":"16KiB"}`))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	return replay.RunWaiting(tr, setup, dev, limit, n)
}

// crowded is a trace in which thread 2 asks for memory that thread 1 frees three seconds later.
// Thread 2 frees block 3 in the meantime, as far as its own requests let it.
const crowded = `a 1 12KiB thread=1 t=0
a 2 8KiB thread=2 t=1000000
f 2 t=2000000
f 1 t=3001000000
a 3 4KiB thread=1 t=3002000000
`

func TestAThreadWaitsForTheFreeOfAnother(t *testing.T) {
	w, err := waits(t, crowded, 10*time.Second, 0)
	require.NoError(t, err)
	require.Equal(t, &replay.Waits{Limit: 10 * time.Second, Threads: 2, Allocs: 3, Waited: 1, Served: 1, Tries: 1,
		Delay: 3e9, Longest: 3e9, Timed: true}, w)
}

func TestAWaitEndsAtItsLimit(t *testing.T) {
	w, err := waits(t, crowded, 2*time.Second, 0)
	require.NoError(t, err)
	require.Equal(t, &replay.Waits{Limit: 2 * time.Second, Threads: 2, Allocs: 2, Waited: 1, Refused: 1,
		Delay: 2e9, Longest: 2e9, Timed: true}, w)
}

// TestOneThreadWaitsInVain: the free that would help is behind the request.
func TestOneThreadWaitsInVain(t *testing.T) {
	w, err := waits(t, crowded, 10*time.Second, 1)
	require.NoError(t, err)
	require.Equal(t, 1, w.Threads)
	require.EqualValues(t, 1, w.Refused)
	require.EqualValues(t, 10e9, w.Delay)
	require.EqualValues(t, 2, w.Allocs)
}

// TestWaitsWithoutTimes: requests wait until no other thread can free, in the order of the trace.
func TestWaitsWithoutTimes(t *testing.T) {
	w, err := waits(t, "a 1 8KiB thread=1\na 2 8KiB thread=2\na 3 8KiB thread=3\na 4 16KiB thread=4\nf 3\nf 1\n",
		time.Second, 0)
	require.NoError(t, err)
	require.Equal(t, &replay.Waits{Limit: time.Second, Threads: 4, Allocs: 3, Waited: 2, Served: 1, Refused: 1,
		Tries: 3}, w)
}

// TestARefusedRequestWaitsToo: a request that the recorded program was refused waits like any
// other, and is freed at once when it is granted.
func TestARefusedRequestWaitsToo(t *testing.T) {
	w, err := waits(t, "a 1 16KiB thread=1\nrefused 16KiB thread=2\nf 1\na 3 16KiB thread=2\n", time.Second, 0)
	require.NoError(t, err)
	require.Equal(t, &replay.Waits{Limit: time.Second, Threads: 2, Allocs: 3, Waited: 1, Served: 1, Tries: 1}, w)
}

func TestWaitingNeedsPlainTraces(t *testing.T) {
	_, err := waits(t, "a 1 1KiB\nuse 1 7\n", time.Second, 0)
	require.EqualError(t, err, "event 1: use: threads wait in traces of requests, frees and frontiers only")
}

// TestWaitingWithoutWaitsIsAReplay: on an ample device every recording is granted as in a replay.
func TestWaitingWithoutWaitsIsAReplay(t *testing.T) {
	setup, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	for name, tr := range workload.EachRecording {
		if name != "cpu_unet_train" {
			continue
		}
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		res, err := replay.Run(tr, setup, dev, replay.Options{})
		require.NoError(t, err)
		w, err := replay.RunWaiting(tr, setup, dev, time.Second, 0)
		require.NoError(t, err)
		require.Equal(t, res.Allocs, w.Allocs)
		require.Zero(t, w.Waited)
	}
}
