package plugin

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wire is what is shared with an instance, as native/wire.h has it.
type wire struct {
	callAsked, callAnswered     atomic.Uint32 // numbers of questions
	hostSleeps, programSleeps   atomic.Uint32 // who has to be woken
	deviceAsked, deviceAnswered atomic.Uint32 // numbers of questions
	deviceSleeps                atomic.Uint32 // a thread of the plug-in has to be woken
	gone                        atomic.Uint32 // the instance has ended

	question call
	answer   reply

	device        deviceOp
	deviceArg     [4]uint64
	deviceResult  [2]uint64
	deviceVerdict deviceAnswer

	signal, fault uint64 // that ended it, and the address that was about
	status        uint64 // as wait tells it
	text          [1024]byte
}

// channel is the way to one instance: shared memory, a file by which it wakes this program, and one
// that has what it prints to its standard error.
type channel struct {
	*wire
	memory  []byte
	file    int // behind memory, until the instance has it
	waking  int
	output  int
	looks   int            // how often to look the next time
	waits   [2]unix.PollFd // waking, and the socket of the host, which breaks when that ends
	drained [8]byte        // what is read from waking
}

// mostSleep in milliseconds is after how long this program looks for itself, and wakes whoever
// sleeps there: a plug-in may have closed all files that it found, or written where it says who
// sleeps.
const mostSleep = 50

// mostOutput bounds in bytes what is kept of what an instance prints.
const mostOutput = 64 << 10

// How often this program looks for an answer before it sleeps: more often where that was worth it
// the last time. A round trip between two idle cores takes less than a microsecond, and one that
// has to wake somebody tens; but where others use the cores too, who looks keeps the one from
// running that he looks for.
const (
	fewLooks  = 16
	mostLooks = 20_000 // as long as waking takes
)

// newChannel returns a channel to nobody yet.
func newChannel() (*channel, error) {
	c := &channel{file: -1, waking: -1, output: -1, looks: mostLooks}
	const size = int(unsafe.Sizeof(wire{}))
	err := c.open(size)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("plugin: shared memory: %w", err)
	}
	c.wire = (*wire)(unsafe.Pointer(&c.memory[0]))
	c.waits[0] = unix.PollFd{Fd: int32(c.waking), Events: unix.POLLIN}
	return c, nil
}

// open makes the files. What an instance prints goes to a file that cannot grow, so that the last
// that fits is kept and the plug-in does not notice.
func (c *channel) open(size int) (err error) {
	if c.file, err = unix.MemfdCreate("vramyard-wire", unix.MFD_CLOEXEC); err != nil {
		return err
	}
	if err = unix.Ftruncate(c.file, int64(size)); err != nil {
		return err
	}
	if c.memory, err = unix.Mmap(c.file, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	if c.waking, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if c.output, err = unix.MemfdCreate("vramyard-output", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return err
	}
	if err = unix.Ftruncate(c.output, mostOutput); err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(c.output), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	return err
}

// close gives everything back. The instance is not told.
func (c *channel) close() {
	for _, fd := range []int{c.file, c.waking, c.output} {
		if fd >= 0 {
			_ = unix.Close(fd) // it is ours
		}
	}
	if c.memory != nil {
		_ = unix.Munmap(c.memory) // as above
	}
	c.memory, c.wire, c.file, c.waking, c.output = nil, nil, -1, -1, -1
}

// wake wakes who sleeps on a word.
func wake(word *atomic.Uint32) {
	const futexWake = 1
	// nobody there is no error
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// ask makes a call and returns what became of it. What the plug-in asks the device meanwhile is
// answered by serve.
func (c *channel) ask(k call, limit time.Duration, serve serveFunc) (reply, outcome) {
	c.question = k
	number := c.callAsked.Load() + 1
	c.callAsked.Store(number)
	// Waking is a call of the system, which nobody needs who is still looking.
	if c.hostSleeps.Swap(0) != 0 {
		wake(&c.callAsked)
	}
	var since time.Time // of the first moment at which there was something to wait for
	for {
		c.look(number)
		switch asked := c.deviceAsked.Load(); {
		case c.callAnswered.Load() == number:
			return c.answer, returned
		case asked != c.deviceAnswered.Load():
			c.deviceResult, c.deviceVerdict = serve(c.device, c.deviceArg)
			c.deviceAnswered.Store(asked)
			if c.deviceSleeps.Swap(0) != 0 {
				wake(&c.deviceAnswered)
			}
		case c.gone.Load() != 0, c.waits[1].Revents&unix.POLLHUP != 0:
			return reply{}, ended
		}
		if since.IsZero() {
			since = time.Now()
		}
		// A plug-in that asks the device for ever has to end too.
		left := limit - time.Since(since)
		if left <= 0 {
			return reply{}, overdue
		}
		c.sleep(number, left)
	}
}

// stirs reports whether there is something to do for who waits for an answer.
func (c *channel) stirs(number uint32) bool {
	return c.callAnswered.Load() == number || c.deviceAsked.Load() != c.deviceAnswered.Load() || c.gone.Load() != 0
}

// look waits for something to do for a moment.
func (c *channel) look(number uint32) {
	if runtime.NumCPU() == 1 {
		return // looking would only keep the other from running
	}
	for range c.looks {
		if c.stirs(number) {
			c.looks = min(2*c.looks, mostLooks)
			return
		}
	}
	c.looks = max(c.looks/2, fewLooks)
}

// sleep waits for something to do, at most so long.
func (c *channel) sleep(number uint32, most time.Duration) {
	// First it is said, then looked at once more: whoever answers in between sees it and wakes.
	c.programSleeps.Store(1)
	if !c.stirs(number) {
		if n, _ := unix.Poll(c.waits[:], int(min(most.Milliseconds()+1, mostSleep))); n == 0 {
			// the caller looks what there is
			wake(&c.callAsked)
			wake(&c.deviceAnswered)
		}
	}
	c.programSleeps.Store(0)
	_, _ = unix.Read(c.waking, c.drained[:]) // nothing to read is no error
}

// printed returns the last line that the instance has printed to its standard error, "" if there is
// none.
func (c *channel) printed() string {
	n, err := unix.Seek(c.output, 0, unix.SEEK_CUR) // the instance's own place: the file is the same
	if err != nil || n == 0 {
		return ""
	}
	text := make([]byte, min(n, mostOutput))
	if n, err = pread(c.output, text); err != nil {
		return ""
	}
	return lastLine(string(text[:n]))
}

// pread reads a file from its start.
func pread(fd int, into []byte) (int64, error) {
	n, err := unix.Pread(fd, into, 0)
	return int64(n), err
}
