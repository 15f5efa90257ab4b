package snapshot

import (
	"math/bits"
	"math/rand/v2"
)

// Interner adds strings, frames and stacks to the tables of a snapshot, each once.
type Interner struct {
	s       *Snapshot
	strings map[string]uint32
	frames  map[Frame]uint32
	// secret keeps files from choosing calls that all belong in one place. No index depends on it.
	secret uint64
	// callAt finds calls by their hash: an open table of indices, at most three quarters full. A map would
	// take five times the memory, and a file can have more calls than anything else.
	callAt []uint32
	// frameOf and callOf are the stack that came last, outermost frame first: the next one
	// mostly shares its outer part, which then needs no look-up.
	frameOf, callOf []uint32
}

// NewInterner returns an interner for the tables of s, which keep what they hold.
func NewInterner(s *Snapshot) *Interner {
	in := &Interner{s: s, strings: map[string]uint32{}, frames: map[Frame]uint32{}, secret: rand.Uint64()}
	if len(s.Strings) == 0 {
		s.Strings = []string{""}
	}
	if len(s.Frames) == 0 {
		s.Frames = []Frame{{}}
	}
	if s.Calls.n == 0 {
		s.Calls.add(Call{})
	}
	for i, text := range s.Strings {
		in.strings[text] = uint32(i)
	}
	for i, f := range s.Frames[1:] { // a recorded frame without names is not the empty one
		in.frames[f] = uint32(i + 1)
	}
	in.indexCalls()
	return in
}

// String returns the index of a text.
func (in *Interner) String(text string) uint32 {
	id, ok := in.strings[text]
	if !ok {
		id = uint32(len(in.s.Strings))
		in.strings[text] = id
		in.s.Strings = append(in.s.Strings, text)
	}
	return id
}

// Frame returns the index of a frame.
func (in *Interner) Frame(f Frame) uint32 {
	id, ok := in.frames[f]
	if !ok {
		id = uint32(len(in.s.Frames))
		in.frames[f] = id
		in.s.Frames = append(in.s.Frames, f)
	}
	return id
}

// Stack returns the index of a stack, whose frames are given by index, the innermost first.
// The cost is a step for each frame, and a look-up for each that the last stack did not share.
func (in *Interner) Stack(frames []uint32) uint32 {
	n, shared := len(frames), 0
	for shared < min(n, len(in.frameOf)) && in.frameOf[shared] == frames[n-1-shared] {
		shared++
	}
	in.frameOf, in.callOf = in.frameOf[:shared], in.callOf[:shared]
	var id uint32
	if shared > 0 {
		id = in.callOf[shared-1]
	}
	for i := n - 1 - shared; i >= 0; i-- {
		id = in.call(Call{Frame: frames[i], Caller: id})
		in.frameOf, in.callOf = append(in.frameOf, frames[i]), append(in.callOf, id)
	}
	return id
}

// call returns the index of a call.
func (in *Interner) call(c Call) uint32 {
	at := in.slot(c)
	if id := in.callAt[at]; id != 0 {
		return id
	}
	id := uint32(in.s.Calls.add(c))
	in.callAt[at] = id
	if 4*in.s.Calls.n > 3*len(in.callAt) {
		in.indexCalls()
	}
	return id
}

// slot returns where a call is in the table, or the free place where it belongs.
func (in *Interner) slot(c Call) uint64 {
	mask := uint64(len(in.callAt) - 1)
	high, low := bits.Mul64((uint64(c.Frame)<<32|uint64(c.Caller))^in.secret, in.secret|1)
	at := (high ^ low) & mask
	for in.callAt[at] != 0 && in.s.Calls.at(in.callAt[at]) != c {
		at = (at + 1) & mask
	}
	return at
}

// indexCalls makes a table that has room for more calls.
func (in *Interner) indexCalls() {
	size := 64
	for 3*size <= 4*in.s.Calls.n {
		size *= 2
	}
	in.callAt = make([]uint32, size)
	for id := 1; id < in.s.Calls.n; id++ {
		in.callAt[in.slot(in.s.Calls.at(uint32(id)))] = uint32(id)
	}
}
