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
	SharedBlock     int32     // bytes of shared memory of a block
	SharedOptIn     int32     // the same with opt-in
	SharedProcessor int32     // bytes of shared memory of a multiprocessor
	Registers       int32     // registers of a multiprocessor
	L2              int32     // bytes of the L2 cache
	Bus             int32     // bits of the memory bus
	Clock           int32     // kHz
	MemoryClock     int32     // kHz
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
	// Keep in bytes bounds the copies whose contents are kept.
	Keep device.Size
	// Base is the lowest address of every device.
	Base device.Addr
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

	mu    sync.Mutex // serializes the calls of all processes
	lines map[net.Conn]struct{}
}

// Listen starts to serve at a Unix socket.
func Listen(path string, c Config) (*Server, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the socket for the program: %w", err)
	}
	s := &Server{config: c, listener: l, lines: map[net.Conn]struct{}{}}
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
	memories := make([]*Memory, len(s.config.Devices))
	for i, d := range s.config.Devices {
		memories[i] = NewMemory(d.Source)
	}
	if s.greet(line) == nil {
		for s.answer(line, memories) == nil {
			continue // until the process ends
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range memories {
		_ = m.GiveBack() // a simulated device refuses nothing that is held
	}
	delete(s.lines, line)
	_ = line.Close() // Close may have closed it
}

// greet exchanges the first messages.
func (s *Server) greet(line net.Conn) error {
	var first [2]uint64 // the protocol and the number of the process
	if err := binary.Read(line, binary.NativeEndian, &first); err != nil {
		return err
	}
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
func (s *Server) answer(line io.ReadWriter, memories []*Memory) error {
	var buffer [40]byte
	if _, err := io.ReadFull(line, buffer[:]); err != nil {
		return err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(buffer[8*i:]) }
	op, number := Op(word(0)&0xffffffff), word(0)>>32
	var r reply
	if number >= uint64(len(memories)) {
		r.Answer = answerInvalid
	} else {
		s.mu.Lock()
		r.Value, r.Answer = memories[number].Serve(op, [4]uint64{word(1), word(2), word(3), word(4)})
		s.mu.Unlock()
	}
	for i, w := range []uint64{uint64(r.Answer), r.Value[0], r.Value[1]} {
		binary.NativeEndian.PutUint64(buffer[8*i:], w)
	}
	_, err := line.Write(buffer[:24])
	return err
}
