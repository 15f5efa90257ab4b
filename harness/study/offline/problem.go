package offline

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
)

// Buffer is a size to place at one offset for a span of time.
type Buffer = packing.Buffer

// Problem is a set of buffers to place. It is immutable and safe for concurrent use.
type Problem struct {
	packer  *packing.Problem
	buffers []Buffer
	spans   []packing.Span // sections of each buffer
	peaks   []device.Size  // live bytes of each section
	total   device.Size    // peak of the live bytes
	unit    device.Size    // every height is a multiple of it
}

// New returns the problem of placing buffers, or the error of [packing.New]. It keeps the slice.
func New(buffers []Buffer) (*Problem, error) {
	packer, err := packing.New(buffers)
	if err != nil {
		return nil, err
	}
	p := &Problem{
		packer: packer, buffers: buffers, spans: packer.Spans(), peaks: packer.Peaks(), total: packer.LowerBound(),
	}
	for i := range buffers {
		b := &buffers[i]
		p.unit = gcd(p.unit, b.Size)
		if b.Align > 1 {
			p.unit = gcd(p.unit, b.Align)
		}
	}
	p.unit = max(p.unit, 1)
	return p, nil
}

// gcd returns the greatest common divisor; gcd(0, n) is n.
func gcd(a, b device.Size) device.Size {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Buffers returns the buffers, which must not be changed.
func (p *Problem) Buffers() []Buffer { return p.buffers }

// LowerBound returns the peak of the live bytes: no placement is lower.
func (p *Problem) LowerBound() device.Size { return p.total }
