package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"
)

// threadID returns the number of this thread.
func threadID() int { return unix.Gettid() }

// stepThrough runs a strategy in a process of its own and counts the lines that its pairs touch.
func stepThrough(strategy string, n int) (_ *linesSeen, err error) {
	runtime.LockOSThread() // only the thread that attached may control the tracee
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, tracedCommand, strategy, strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t := tracee{process: cmd.Process.Pid, decoded: map[uint64]*decoded{}}
	seen := &linesSeen{Strategy: strategy, Live: n}
	if _, err = fmt.Fscan(stdout, &t.thread, &seen.Metadata); err == nil {
		err = t.watch(stdin, seen)
	}
	if err != nil {
		_ = cmd.Process.Kill() // the first error is returned
		_ = cmd.Wait()
		return nil, err
	}
	return seen, cmd.Wait()
}

// tracee is the thread that is stepped through.
type tracee struct {
	process int
	thread  int                 // that runs the pairs
	others  []int               // that stand still
	decoded map[uint64]*decoded // by the address of the instruction
}

// decoded holds the memory accesses of an instruction.
type decoded struct {
	touches  []touched
	unknown  bool
	isMarker bool
}

// touched is memory that an instruction reads or writes.
type touched struct {
	mem   x86asm.Mem
	bytes int
	next  uint64 // address of the next instruction, which RIP stands for
}

// errEnded means that the thread ended before its pairs did.
var errEnded = errors.New("the traced process ended too soon")

// watch steps through all pairs.
func (t *tracee) watch(stdin io.Writer, seen *linesSeen) error {
	if err := unix.PtraceAttach(t.thread); err != nil {
		return fmt.Errorf("attach to the traced process: %w", err)
	}
	defer t.release() // the thread of the pairs last, because the process may end with it
	if err := await(t.thread, unix.SIGSTOP, nil); err != nil {
		return err
	}
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		return err
	}
	m := newMemory()
	for i := range tracedWarm + tracedPairs {
		if i == tracedWarm {
			m.startCounting()
		}
		if err := t.resume(); err != nil { // to the breakpoint before the pair
			return err
		}
		if i == 0 {
			if err := t.stopOthers(); err != nil {
				return err
			}
		}
		if err := t.pair(m); err != nil {
			return err
		}
		if err := t.resume(); err != nil { // over the one behind it
			return err
		}
	}
	m.report(seen)
	return nil
}

// resume continues the thread to its next breakpoint.
func (t *tracee) resume() error {
	if err := unix.PtraceCont(t.thread, 0); err != nil {
		return err
	}
	return await(t.thread, unix.SIGTRAP, func(sig int) error { return unix.PtraceCont(t.thread, sig) })
}

// stopOthers stops all other threads of the process and returns them. The scheduler's own would
// find that a pair takes long and ask the goroutine to step aside, which would be counted.
func (t *tracee) stopOthers() error {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.process))
	if err != nil {
		return err
	}
	for _, f := range all {
		id, err := strconv.Atoi(f.Name())
		if err != nil {
			return err
		}
		if id == t.thread {
			continue
		}
		if err := unix.PtraceAttach(id); err != nil {
			return err
		}
		t.others = append(t.others, id)
		if err := await(id, unix.SIGSTOP, nil); err != nil {
			return err
		}
	}
	return nil
}

// release detaches from all threads and reaps the ended ones: until then the end of the process is
// not reported.
func (t *tracee) release() {
	for _, id := range append(t.others, t.thread) {
		if unix.PtraceDetach(id) != nil {
			_, _ = unix.Wait4(id, nil, unix.WALL|unix.WNOHANG, nil) // there may be nothing
		}
	}
	t.others = nil
}

// await waits until a thread stops with a signal. Others are handed on by pass.
func await(thread int, want unix.Signal, pass func(sig int) error) error {
	for {
		var status unix.WaitStatus
		switch _, err := unix.Wait4(thread, &status, unix.WALL, nil); {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case !status.Stopped():
			return errEnded
		case status.StopSignal() == want:
			return nil
		case pass == nil:
			return fmt.Errorf("the traced process got signal %v", status.StopSignal())
		}
		if err := pass(int(status.StopSignal())); err != nil {
			return err
		}
	}
}

// pair steps from one breakpoint to the next.
func (t *tracee) pair(m *memory) error {
	m.beginPair()
	var regs unix.PtraceRegs
	for {
		if err := unix.PtraceGetRegs(t.thread, &regs); err != nil {
			return err
		}
		d, err := t.decode(regs.Rip)
		if err != nil {
			return err
		}
		if d.isMarker {
			return nil
		}
		m.instruction(d.unknown)
		for _, what := range d.touches {
			m.touch(regs.Rip, what.address(&regs), what.bytes)
		}
		if err := unix.PtraceSingleStep(t.thread); err != nil {
			return err
		}
		if err := await(t.thread, unix.SIGTRAP, func(int) error { return unix.PtraceSingleStep(t.thread) }); err != nil {
			return err
		}
	}
}

func (t *tracee) decode(at uint64) (*decoded, error) {
	if d := t.decoded[at]; d != nil {
		return d, nil
	}
	code := make([]byte, 16) // as long as an instruction may be, and one more
	if _, err := unix.PtracePeekText(t.thread, uintptr(at), code); err != nil {
		return nil, err
	}
	d := decodeCode(code, at)
	t.decoded[at] = d
	return d, nil
}

// Instructions with a memory operand that do not access memory, and instructions that access the
// stack without one.
var (
	touchNothing = []x86asm.Op{
		x86asm.LEA, x86asm.NOP, x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHW,
	}
	pushes = []x86asm.Op{x86asm.PUSH, x86asm.CALL}
	pops   = []x86asm.Op{x86asm.POP, x86asm.RET}
)

func decodeCode(code []byte, at uint64) *decoded {
	inst, err := x86asm.Decode(code, 64)
	if err != nil {
		return &decoded{unknown: true}
	}
	d := &decoded{isMarker: inst.Op == x86asm.INT && inst.Args[0] == x86asm.Imm(3)}
	next := at + uint64(inst.Len)
	if slices.Contains(pushes, inst.Op) {
		d.touches = append(d.touches, touched{x86asm.Mem{Base: x86asm.RSP, Disp: -8}, 8, next})
	}
	if slices.Contains(pops, inst.Op) {
		d.touches = append(d.touches, touched{x86asm.Mem{Base: x86asm.RSP}, 8, next})
	}
	if slices.Contains(touchNothing, inst.Op) {
		return d
	}
	for _, a := range inst.Args {
		if mem, ok := a.(x86asm.Mem); ok {
			d.touches = append(d.touches, touched{mem, max(inst.MemBytes, 1), next})
		}
	}
	return d
}

// address returns where the memory is, given the registers before the instruction.
func (w touched) address(r *unix.PtraceRegs) uint64 {
	displacement := uint64(int64(int32(w.mem.Disp))) // the decoder does not extend the sign of all
	at := displacement + register(w.mem.Base, r, w.next) + uint64(w.mem.Scale)*register(w.mem.Index, r, w.next)
	if w.mem.Segment == x86asm.FS {
		at += r.Fs_base
	}
	return at
}

// register returns the value of a register that an address is made of; 0 for none.
func register(reg x86asm.Reg, r *unix.PtraceRegs, next uint64) uint64 {
	if reg == x86asm.RIP {
		return next
	}
	all := [...]uint64{
		r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
	}
	switch {
	case reg >= x86asm.RAX && reg <= x86asm.R15:
		return all[reg-x86asm.RAX]
	case reg >= x86asm.EAX && reg <= x86asm.R15L:
		return all[reg-x86asm.EAX] & 0xffff_ffff
	}
	return 0
}
