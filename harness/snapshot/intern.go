package snapshot

// Interner adds strings, frames and stacks to the tables of a snapshot, each once.
type Interner struct {
	s       *Snapshot
	strings map[string]uint32
	frames  map[Frame]uint32
	calls   map[Call]uint32
	// frameOf and callOf are the stack that came last, outermost frame first: the next one
	// mostly shares its outer part, which then needs no look-up.
	frameOf, callOf []uint32
}

// NewInterner returns an interner for the tables of s, which keep what they hold.
func NewInterner(s *Snapshot) *Interner {
	in := &Interner{s: s, strings: map[string]uint32{}, frames: map[Frame]uint32{}, calls: map[Call]uint32{}}
	if len(s.Strings) == 0 {
		s.Strings = []string{""}
	}
	if len(s.Frames) == 0 {
		s.Frames = []Frame{{}}
	}
	if len(s.Calls) == 0 {
		s.Calls = []Call{{}}
	}
	for i, text := range s.Strings {
		in.strings[text] = uint32(i)
	}
	for i, f := range s.Frames[1:] { // a recorded frame without names is not the empty one
		in.frames[f] = uint32(i + 1)
	}
	for i, c := range s.Calls[1:] {
		in.calls[c] = uint32(i + 1)
	}
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
	id, ok := in.calls[c]
	if !ok {
		id = uint32(len(in.s.Calls))
		in.calls[c] = id
		in.s.Calls = append(in.s.Calls, c)
	}
	return id
}
