package torch

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// Interner adds strings, frames and stacks to the tables of a snapshot, each once.
type Interner struct {
	s *Snapshot
	// strings, frames and calls hold indices; 0 marks a free slot.
	strings, frames, calls table
	// secret and seed are random, so that crafted files cannot cause hash collisions. No index depends
	// on them.
	secret [2]uint64
	seed   maphash.Seed
	// frameOf and callOf are the previous stack, outermost frame first. The next stack usually shares
	// its outer frames, which then need no look-up.
	frameOf, callOf []uint32
	recent          [recentStacks]uint32 // cache of stacks by their hash
}

// recentStacks is the size of the cache of stacks. Programs typically have some hundred call sites
// that allocate.
const recentStacks = 1024

// NewInterner returns an interner that adds to the tables of s.
func NewInterner(s *Snapshot) *Interner {
	in := &Interner{s: s, secret: [2]uint64{rand.Uint64(), rand.Uint64()}, seed: maphash.MakeSeed()}
	if len(s.Strings) == 0 {
		s.Strings = []string{""}
	}
	if len(s.Frames) == 0 {
		s.Frames = []Frame{{}}
	}
	if s.Calls.n == 0 {
		s.Calls.add(Call{})
	}
	for id := 1; id < len(s.Strings); id++ {
		in.strings.reserve(id, in.stringHash)
		*in.stringAt(s.Strings[id]) = uint32(id)
	}
	for id := 1; id < len(s.Frames); id++ {
		in.frames.reserve(id, in.frameHash)
		*in.frameAt(s.Frames[id]) = uint32(id)
	}
	for id := 1; id < s.Calls.n; id++ {
		in.calls.reserve(id, in.callHash)
		*in.callAt(s.Calls.at(uint32(id))) = uint32(id)
	}
	return in
}

// hash mixes two numbers with the secret.
func (in *Interner) hash(a, b uint64) uint64 {
	high, low := bits.Mul64(a^in.secret[0], b^in.secret[1])
	return high ^ low
}

func (in *Interner) stringAt(text string) *uint32 {
	return in.strings.find(maphash.String(in.seed, text), func(id uint32) bool { return in.s.Strings[id] == text })
}

func (in *Interner) stringHash(id uint32) uint64 { return maphash.String(in.seed, in.s.Strings[id]) }

// String returns the index of a text.
func (in *Interner) String(text string) uint32 {
	if text == "" {
		return 0
	}
	in.strings.reserve(len(in.s.Strings), in.stringHash)
	at := in.stringAt(text)
	if *at == 0 {
		*at = uint32(len(in.s.Strings))
		in.s.Strings = append(in.s.Strings, text)
	}
	return *at
}

func (in *Interner) frameAt(f Frame) *uint32 {
	hash := in.hash(uint64(f.File)<<32|uint64(f.Function), uint64(f.Line))
	return in.frames.find(hash, func(id uint32) bool { return in.s.Frames[id] == f })
}

func (in *Interner) frameHash(id uint32) uint64 {
	f := in.s.Frames[id]
	return in.hash(uint64(f.File)<<32|uint64(f.Function), uint64(f.Line))
}

// Frame returns the index of a frame. A frame without names differs from the empty frame 0.
func (in *Interner) Frame(f Frame) uint32 {
	in.frames.reserve(len(in.s.Frames), in.frameHash)
	at := in.frameAt(f)
	if *at == 0 {
		*at = uint32(len(in.s.Frames))
		in.s.Frames = append(in.s.Frames, f)
	}
	return *at
}

// Stack returns the index of a stack given by the indices of its frames, innermost first. It takes
// a step for each frame. A stack that is not in the cache also takes a look-up for each frame that
// it does not share with the previous one.
func (in *Interner) Stack(frames []uint32) uint32 {
	hash := uint64(len(frames))
	for _, f := range frames {
		hash = (hash ^ uint64(f)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 32
	}
	recent := &in.recent[hash%recentStacks]
	if !in.isStack(*recent, frames) {
		*recent = in.newStack(frames)
	}
	return *recent
}

func (in *Interner) isStack(id uint32, frames []uint32) bool {
	for _, f := range frames {
		if id == 0 {
			return false
		}
		c := in.s.Calls.at(id)
		if c.Frame != f {
			return false
		}
		id = c.Caller
	}
	return id == 0
}

// newStack returns the index of a stack that is not in the cache.
func (in *Interner) newStack(frames []uint32) uint32 {
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

func (in *Interner) callAt(c Call) *uint32 {
	return in.calls.find(in.hash(uint64(c.Frame), uint64(c.Caller)), func(id uint32) bool {
		return in.s.Calls.at(id) == c
	})
}

func (in *Interner) callHash(id uint32) uint64 {
	c := in.s.Calls.at(id)
	return in.hash(uint64(c.Frame), uint64(c.Caller))
}

func (in *Interner) call(c Call) uint32 {
	in.calls.reserve(in.s.Calls.n, in.callHash)
	at := in.callAt(c)
	if *at == 0 {
		*at = uint32(in.s.Calls.add(c))
	}
	return *at
}
