package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/vramyard/vramyard/device"
)

// Card is what a program is told of a device. Its layout is that of native/standin.h.
type Card struct {
	Name            [256]byte // C string
	Memory          uint64    // bytes
	Major, Minor    int32     // compute capability
	Processors      int32     // multiprocessors
	Threads         int32     // most threads of a multiprocessor
	Blocks          int32     // most blocks of a multiprocessor
	SharedBlock     int32     // bytes of shared memory of a block
	SharedOptIn     int32     // the same with opt-in
	SharedProcessor int32     // bytes of shared memory of a multiprocessor
	Registers       int32     // registers of a multiprocessor
	L2              int32     // bytes of the L2 cache
	Bus             int32     // bits of the memory bus
	Clock           int32     // kHz
	MemoryClock     int32     // kHz
	_               int32     // to a multiple of eight bytes
}

// Simulated is a device that programs see.
type Simulated struct {
	Source device.Source // serves its memory
	Card   Card          // describes it
}

// Config describes what programs see.
type Config struct {
	// Devices are the devices by number.
	Devices []Simulated
	// Lazy lets the devices order events; otherwise an event is complete at once.
	Lazy bool
	// Strict ends a program that calls a function that is not modelled.
	Strict bool
	// Context in bytes is taken of a device by each process that uses it, except the first: the memory
	// of a device excludes the context of one process.
	Context device.Size
	// Keep in bytes bounds the copies whose contents are kept.
	Keep device.Size
	// Base is the lowest address of every device.
	Base device.Addr
	// Watch, if set, is called after each event, never concurrently.
	Watch func(Event)
}

// EventKind is what happened in a process.
type EventKind uint64

// The kinds of events. The values of the marks are those in native/ops.h.
const (
	Ended       EventKind = iota // the process has ended
	StepEnded                    // a step of the optimizer has ended
	OutOfMemory                  // the allocator of the program gave up a request
	Changed                      // the memory taken from a device has changed
	Raised                       // an exception ends the process; Number is 1 if it is for lack of memory, else 0
)

// Waited reports, once, that the allocator of the program waits for events before it reuses a block
// that another stream used.
const Waited EventKind = 15

// The kinds of events that report how many calls took a work area whose size the libraries know but
// the stand-ins do not. Number is the count.
const (
	GuessedConvolutions EventKind = iota + 16 // convolutions of cuDNN
	GuessedRecurrent                          // recurrent layers of cuDNN
	GuessedOther                              // other calls of cuDNN, cuSOLVER, cuSPARSE and cuFFT
)

// Event is something that happened in a process.
type Event struct {
	// Process is the number of the process.
	Process int
	// Kind is what happened.
	Kind EventKind
	// Number is the number of the step, the bytes of the request, or a count.
	Number uint64
	// Reserved in bytes is the memory that the process holds of all devices now.
	Reserved device.Size
	// Peak in bytes is the most that it held of one device.
	Peak device.Size
	// All in bytes is the memory that all processes hold of all devices now, with the context of each
	// process but the first of a device.
	All device.Size
}

// The protocol of native/process.cc.
const (
	protocol = 0x76726d7964000001
	// span in bytes is the address space of one device in a program.
	span = 16 * device.TiB
)

// reply is the answer to a question.
type reply struct {
	Answer Answer
	Value  [2]uint64
}

// hello is the first message to a program, before the cards.
type hello struct {
	Magic                         uint64
	Devices, Lazy, Strict, Unused int32
	Keep, Base, Span              uint64
}

// Server owns devices and answers the stand-ins of any number of processes, each of which has the
// memory that it takes until it ends.
type Server struct {
	config   Config
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex // serializes the calls of all processes
	lines    map[net.Conn]struct{}
	held     device.Size     // sum of the memory of all processes
	users    []int           // processes that use a device, by device
	contexts [][]device.Addr // contexts of all of them but one
}

// Listen starts to serve at a Unix socket.
func Listen(path string, c Config) (*Server, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the socket for the program: %w", err)
	}
	s := &Server{
		config: c, listener: l, lines: map[net.Conn]struct{}{},
		users: make([]int, len(c.Devices)), contexts: make([][]device.Addr, len(c.Devices)),
	}
	s.serving.Go(s.accept)
	return s, nil
}

// Close stops serving and waits until the memory of all processes is released.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for line := range s.lines {
		err = errors.Join(err, line.Close())
	}
	s.mu.Unlock()
	s.serving.Wait()
	return err
}

// accept serves each process until the listener is closed.
func (s *Server) accept() {
	for {
		line, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.lines[line] = struct{}{}
		s.mu.Unlock()
		s.serving.Go(func() { s.serve(line) })
	}
}

// serve answers one process until it ends.
func (s *Server) serve(line net.Conn) {
	p := process{memories: make([]*Memory, len(s.config.Devices)), uses: make([]bool, len(s.config.Devices))}
	for i, d := range s.config.Devices {
		p.memories[i] = NewMemory(d.Source)
	}
	if s.greet(line, &p) == nil {
		for s.answer(line, &p) == nil {
			continue // until the process ends
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(&p, Ended, 0)
	s.held -= p.reserved
	for i, m := range p.memories {
		_ = m.GiveBack() // a simulated device refuses nothing that is held
		if p.uses[i] {
			s.users[i]--
			s.dropContext(i)
		}
	}
	delete(s.lines, line)
	_ = line.Close() // Close may have closed it
}

// process is a program that is served.
type process struct {
	number   int
	memories []*Memory   // by device
	uses     []bool      // whether it has taken memory of a device
	reserved device.Size // of all devices, as last told
}

// addContext takes the context of a process when it first takes memory of a device. It reports
// whether there is room for it.
func (s *Server) addContext(p *process, number uint64, op Op) bool {
	if p.uses[number] || op != opReserve && op != opCreate && op != opAllocAsync {
		return true
	}
	if s.users[number] > 0 && s.config.Context > 0 {
		r, err := s.config.Devices[number].Source.Reserve(s.config.Context, cudaAlign)
		if err != nil {
			return false
		}
		s.contexts[number] = append(s.contexts[number], r.Addr)
	}
	s.users[number]++
	p.uses[number] = true
	return true
}

// dropContext releases a context after a process ended: contexts are alike.
func (s *Server) dropContext(number int) {
	if n := len(s.contexts[number]); n > 0 {
		_ = s.config.Devices[number].Source.Release(s.contexts[number][n-1]) // a simulated device refuses no release
		s.contexts[number] = s.contexts[number][:n-1]
	}
}

// tell calls Watch.
func (s *Server) tell(p *process, kind EventKind, number uint64) {
	e := Event{Process: p.number, Kind: kind, Number: number}
	for _, m := range p.memories {
		e.Reserved += m.Regions + m.Behind
		e.Peak = max(e.Peak, m.Counts.PeakReserved)
	}
	if kind == Changed && e.Reserved == p.reserved || s.config.Watch == nil {
		return
	}
	s.held += e.Reserved - p.reserved
	p.reserved = e.Reserved
	e.All = s.held
	for _, c := range s.contexts {
		e.All += device.Size(len(c)) * s.config.Context
	}
	s.config.Watch(e)
}

// greet exchanges the first messages.
func (s *Server) greet(line net.Conn, p *process) error {
	var first [2]uint64 // the protocol and the number of the process
	if err := binary.Read(line, binary.NativeEndian, &first); err != nil {
		return err
	}
	p.number = int(first[1])
	c := &s.config
	h := hello{
		Magic: protocol, Devices: int32(len(c.Devices)), Lazy: truth32(c.Lazy), Strict: truth32(c.Strict),
		Keep: uint64(c.Keep), Base: uint64(c.Base), Span: uint64(span),
	}
	if err := binary.Write(line, binary.NativeEndian, h); err != nil {
		return err
	}
	for i := range c.Devices {
		if err := binary.Write(line, binary.NativeEndian, &c.Devices[i].Card); err != nil {
			return err
		}
	}
	return nil
}

func truth32(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// answer serves one call.
func (s *Server) answer(line io.ReadWriter, p *process) error {
	var buffer [40]byte
	if _, err := io.ReadFull(line, buffer[:]); err != nil {
		return err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(buffer[8*i:]) }
	op, number := Op(word(0)&0xffffffff), word(0)>>32
	var r reply
	s.mu.Lock()
	switch {
	case op == opMark:
		s.tell(p, EventKind(word(1)), word(2))
	case number >= uint64(len(p.memories)):
		r.Answer = answerInvalid
	case !s.addContext(p, number, op):
		r.Answer = answerOutOfMemory
	default:
		r.Value, r.Answer = p.memories[number].Serve(op, [4]uint64{word(1), word(2), word(3), word(4)})
		if op == opInfo {
			// The context of the program and its libraries take part of the card.
			r.Value[1] = s.config.Devices[number].Card.Memory
		}
		s.tell(p, Changed, 0)
	}
	s.mu.Unlock()
	for i, w := range []uint64{uint64(r.Answer), r.Value[0], r.Value[1]} {
		binary.NativeEndian.PutUint64(buffer[8*i:], w)
	}
	_, err := line.Write(buffer[:24])
	return err
}
