package plugin

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// host is the process from which the instances of one plug-in are forked. It ends when this program
// ends, even by a signal, and all instances end with it.
type host struct {
	mu      sync.Mutex // held while a message is sent
	key     string     // key in hosts
	control int        // socket to the host
	last    uint32     // number of the last instance
}

// hosts are the host processes of this program, by the settings of their plug-in. They are kept
// until the program ends, because check forks thousands of instances.
var hosts struct {
	mu  sync.Mutex
	all map[string]*host
}

// readyMessage is the first message of a host, as in native/host.cc.
type readyMessage struct {
	Ready, Late, EmptyNs uint64
	Text                 [1024]byte
}

// The orders to a host, as in native/host.cc.
const (
	orderFork uint32 = 1
	orderKill uint32 = 2
)

// hostOf returns the host of a plug-in.
func hostOf(c *Config) (*host, error) {
	settings := *c
	settings.Align, settings.Timeout = 0, "" // of this program, not of the host
	key, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	hosts.mu.Lock()
	defer hosts.mu.Unlock()
	if h := hosts.all[string(key)]; h != nil {
		return h, nil
	}
	h, err := startHost(c)
	if err != nil {
		return nil, err
	}
	if hosts.all == nil {
		hosts.all = map[string]*host{}
	}
	h.key = string(key)
	hosts.all[h.key] = h
	return h, nil
}

// remove removes a host that has ended from hosts.
func (h *host) remove() {
	hosts.mu.Lock()
	defer hosts.mu.Unlock()
	if hosts.all[h.key] == h {
		delete(hosts.all, h.key)
	}
}

// startHost starts the host of a plug-in and waits until it has loaded the plug-in.
func startHost(c *Config) (*host, error) {
	dir, err := built()
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, fmt.Errorf("plugin: %w", err)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("plugin: socket: %w", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "control")
	standins := filepath.Join(dir, standinsDir)
	cmd := exec.Command(filepath.Join(dir, hostFile), "3", path, c.Alloc, c.Free, c.Init, c.Reset, c.RecordStream,
		c.Fraction, c.Base, strconv.FormatFloat(c.Share, 'g', -1, 64), strconv.Itoa(c.Device), standins)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+searchPath(standins))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // keeps the terminal's interrupt from the host
	err = cmd.Start()
	_ = theirs.Close() // the host has its own copy
	if err != nil {
		_ = unix.Close(ends[0]) // the host did not start
		return nil, fmt.Errorf("plugin: the host program does not start: %w", err)
	}
	go func() { _ = cmd.Wait() }() // the socket closes when the host ends
	h := &host{control: ends[0]}
	if err := h.awaitReady(c); err != nil {
		_ = unix.Close(ends[0]) // ends the host, even while loading hangs
		return nil, fmt.Errorf("plugin: %s cannot be loaded: %w", c.Path, err)
	}
	return h, nil
}

// searchPath returns the library search path of a host: the stand-ins come first.
func searchPath(standins string) string {
	if rest := os.Getenv("LD_LIBRARY_PATH"); rest != "" {
		return standins + ":" + rest
	}
	return standins
}

// awaitReady waits for the host's report that the plug-in is loaded.
func (h *host) awaitReady(c *Config) error {
	var g readyMessage
	text := make([]byte, binary.Size(g))
	until := time.Now().Add(c.timeout())
	for {
		left := time.Until(until)
		if left <= 0 {
			return fmt.Errorf("loading takes more than %s", c.Timeout)
		}
		p := []unix.PollFd{{Fd: int32(h.control), Events: unix.POLLIN}}
		if n, err := unix.Poll(p, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		} else if n > 0 {
			break
		}
	}
	// Messages are atomic; a read of 0 bytes means that the host has closed the socket.
	if n, err := unix.Read(h.control, text); err != nil || n != len(text) {
		return errors.New("the host program has ended")
	}
	if err := binary.Read(bytes.NewReader(text), binary.NativeEndian, &g); err != nil {
		return err
	}
	if g.Ready == 0 {
		return errors.New(cString(g.Text[:]))
	}
	return nil
}

// send sends an order, optionally with files.
func (h *host) send(op, id uint32, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	order := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, op), id)
	return unix.Sendmsg(h.control, order, rights, nil, unix.MSG_NOSIGNAL)
}

// instance is a process with its own copy of the plug-in, forked before the plug-in was called.
type instance struct {
	*channel
	host *host
	id   uint32
	once sync.Once
}

// newInstance returns a fresh instance.
func newInstance(c *Config) (*instance, error) {
	h, err := hostOf(c)
	if err != nil {
		return nil, err
	}
	ch, err := newChannel()
	if err != nil {
		return nil, err
	}
	ch.polled[1] = unix.PollFd{Fd: int32(h.control)}
	// The lock keeps orders apart and instance numbers unique.
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	i := &instance{channel: ch, host: h, id: h.last}
	if err := h.send(orderFork, i.id, ch.file, ch.waking, ch.output); err != nil {
		ch.close()
		h.remove()
		return nil, fmt.Errorf("plugin: the host program has ended: %w", err)
	}
	_ = unix.Close(ch.file) // the instance has its own copy
	ch.file = -1
	return i, nil
}

// end kills the process of the instance if it is running, and closes its channel. Further calls
// have no effect.
func (i *instance) end() {
	i.once.Do(func() {
		i.host.mu.Lock()
		_ = i.host.send(orderKill, i.id) // if the host has ended, so has the instance
		i.host.mu.Unlock()
		i.channel.close()
	})
}

// ending describes how the process of the instance ended.
func (i *instance) ending() string {
	status := unix.WaitStatus(i.status)
	text := "the process has ended"
	switch {
	case i.gone.Load() == 0:
		text = "the host program has ended"
	case status.Signaled():
		// The address belongs to the first signal that was recorded; a later one may have ended the
		// process.
		s := status.Signal()
		text = "killed by " + unix.SignalName(s)
		if uint64(s) == i.signal && i.fault != 0 {
			text += fmt.Sprintf(" at 0x%x", i.fault)
		}
	case status.Exited() && status.ExitStatus() == 0 && i.text[0] != 0:
		text = cString(i.text[:]) // the fork failed
	case status.Exited():
		text = fmt.Sprintf("exited with status %d", status.ExitStatus())
	}
	if last := i.lastOutput(); last != "" {
		text += ": " + last
	}
	return text
}

// exceptionText returns the text of the exception that the plug-in threw in its last call.
func (i *instance) exceptionText() string { return cString(i.text[:]) }
