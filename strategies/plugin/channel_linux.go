package plugin

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vramyard/vramyard/device/standin"
)

// wire is the layout of the memory shared with an instance. It mirrors native/wire.h.
type wire struct {
	callAsked, callAnswered     atomic.Uint32 // sequence numbers of calls
	hostSleeps, programSleeps   atomic.Uint32 // whether that side sleeps and has to be woken
	deviceAsked, deviceAnswered atomic.Uint32 // sequence numbers of device calls
	deviceSleeps                atomic.Uint32 // whether a thread of the plug-in sleeps
	gone                        atomic.Uint32 // the instance has ended

	question call
	answer   reply

	device        standin.Op
	deviceArg     [4]uint64
	deviceResult  [2]uint64
	deviceVerdict standin.Answer

	signal, fault uint64 // signal that ended the instance, and the faulting address
	status        uint64 // exit status, as wait returns it
	text          [1024]byte
}

// channel is the connection to one instance: shared memory, a file by which the instance wakes this
// program, and a file that receives its standard error.
type channel struct {
	*wire
	memory  []byte
	file    int // file of memory, until the instance has it
	waking  int
	output  int
	spins   int            // number of spins before the next sleep
	polled  [2]unix.PollFd // waking, and the socket of the host, which closes when the host ends
	drained [8]byte        // buffer for reads from waking
}

// maxSleep in milliseconds is the longest sleep before this program polls and wakes the instance
// again. The plug-in may have closed the files or overwritten the flags by which it would wake us.
const maxSleep = 50

// maxOutput in bytes bounds the standard error that is kept of an instance.
const maxOutput = 64 << 10

// The number of spins before this program sleeps. It grows while spinning pays. A round trip
// between two idle cores takes less than a microsecond, one with a wake-up tens. On busy cores a
// spinning program delays the instance it waits for.
const (
	minSpins = 16
	maxSpins = 20_000 // as long as a wake-up takes
)

// newChannel returns a channel without an instance.
func newChannel() (*channel, error) {
	c := &channel{file: -1, waking: -1, output: -1, spins: maxSpins}
	const size = int(unsafe.Sizeof(wire{}))
	err := c.open(size)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("plugin: shared memory: %w", err)
	}
	c.wire = (*wire)(unsafe.Pointer(&c.memory[0]))
	c.polled[0] = unix.PollFd{Fd: int32(c.waking), Events: unix.POLLIN}
	return c, nil
}

// open creates the files. Standard error goes to a file of bounded size: the beginning is kept and
// the plug-in gets no error.
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
	if err = unix.Ftruncate(c.output, maxOutput); err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(c.output), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	return err
}

// close frees the resources of the channel. It does not notify the instance.
func (c *channel) close() {
	for _, fd := range []int{c.file, c.waking, c.output} {
		if fd >= 0 {
			_ = unix.Close(fd) // cannot fail for a valid descriptor
		}
	}
	if c.memory != nil {
		_ = unix.Munmap(c.memory) // cannot fail for a valid mapping
	}
	c.memory, c.wire, c.file, c.waking, c.output = nil, nil, -1, -1, -1
}

// wake wakes the sleepers on a word.
func wake(word *atomic.Uint32) {
	const futexWake = 1
	// Waking a word without a sleeper is no error.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// ask makes a call and returns its outcome. Device calls that the plug-in makes in the meantime are
// answered by serve.
func (c *channel) ask(k call, limit time.Duration, serve serveFunc) (reply, outcome) {
	c.question = k
	number := c.callAsked.Load() + 1
	c.callAsked.Store(number)
	// No system call is needed while the host spins.
	if c.hostSleeps.Swap(0) != 0 {
		wake(&c.callAsked)
	}
	var since time.Time // first moment without an answer
	for {
		c.spin(number)
		switch asked := c.deviceAsked.Load(); {
		case c.callAnswered.Load() == number:
			return c.answer, returned
		case asked != c.deviceAnswered.Load():
			c.deviceResult, c.deviceVerdict = serve(c.device, c.deviceArg)
			c.deviceAnswered.Store(asked)
			if c.deviceSleeps.Swap(0) != 0 {
				wake(&c.deviceAnswered)
			}
		case c.gone.Load() != 0, c.polled[1].Revents&unix.POLLHUP != 0:
			return reply{}, ended
		}
		if since.IsZero() {
			since = time.Now()
		}
		// A plug-in that calls the device in an endless loop must time out too.
		left := limit - time.Since(since)
		if left <= 0 {
			return reply{}, timedOut
		}
		c.sleep(number, left)
	}
}

// arrived reports whether a reply or a device call has arrived.
func (c *channel) arrived(number uint32) bool {
	return c.callAnswered.Load() == number || c.deviceAsked.Load() != c.deviceAnswered.Load() || c.gone.Load() != 0
}

// spin checks for a reply or a device call, up to c.spins times.
func (c *channel) spin(number uint32) {
	if runtime.NumCPU() == 1 {
		return // spinning would only delay the instance
	}
	for range c.spins {
		if c.arrived(number) {
			c.spins = min(2*c.spins, maxSpins)
			return
		}
	}
	c.spins = max(c.spins/2, minSpins)
}

// sleep waits for a reply or a device call, at most a time limit.
func (c *channel) sleep(number uint32, most time.Duration) {
	// Publish the flag, then check once more: an instance that answers in between sees the flag and
	// wakes us.
	c.programSleeps.Store(1)
	if !c.arrived(number) {
		if n, _ := unix.Poll(c.polled[:], int(min(most.Milliseconds()+1, maxSleep))); n == 0 {
			// Wake the instance, in case its flags were overwritten. The caller checks for a reply.
			wake(&c.callAsked)
			wake(&c.deviceAnswered)
		}
	}
	c.programSleeps.Store(0)
	_, _ = unix.Read(c.waking, c.drained[:]) // fails if there was no wake-up, which is expected
}

// lastOutput returns the last line that the instance wrote to standard error, or "".
func (c *channel) lastOutput() string {
	n, err := unix.Seek(c.output, 0, unix.SEEK_CUR) // the offset is shared with the instance
	if err != nil || n == 0 {
		return ""
	}
	text := make([]byte, min(n, maxOutput))
	if n, err = pread(c.output, text); err != nil {
		return ""
	}
	return lastLine(string(text[:n]))
}

// pread reads a file from offset 0.
func pread(fd int, into []byte) (int64, error) {
	n, err := unix.Pread(fd, into, 0)
	return int64(n), err
}
