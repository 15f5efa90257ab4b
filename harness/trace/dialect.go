package trace

import "github.com/vramyard/vramyard/alloc"

// dialects holds the verbs of every line-oriented form, by the form's name, for the one parser. The
// native form has the name "".
var dialects = map[string]map[string]*verb{
	"":      native,
	"bfc":   bfcLines,
	"xdl":   xdlLines,
	"torch": torchLines,
}

// bfcLines are the lines of TensorFlow's BFC vectors. A plain allocation has no hint: only the
// variant with two ends distinguishes an upper end, and its default is the lower one.
var bfcLines = map[string]*verb{
	"a": {Event{Kind: Alloc}, []field{fieldID, fieldSize, fieldAlign}, 2, nil},
	"u": {Event{Kind: Alloc, Hint: alloc.HintHigh}, []field{fieldID, fieldSize, fieldAlign}, 2, nil},
	"t": {Event{Kind: Alloc}, []field{fieldID, fieldSize, fieldBefore}, 3, nil},
	"f": {Event{Kind: Free}, []field{fieldID}, 1, nil},
	"s": {Event{Kind: Frontier}, []field{fieldCount}, 1, nil},
	"c": {Event{Kind: ClearStats}, nil, 0, nil},
	"p": {Event{Kind: Print, Arg: PrintStats}, nil, 0, nil},
	"o": {Event{Kind: Print, Arg: PrintMap}, nil, 0, nil},
}

// xdlLines are the lines of the XDL vectors.
var xdlLines = map[string]*verb{
	"a": {Event{Kind: Alloc}, []field{fieldID, fieldSize}, 2, nil},
	"f": {Event{Kind: Free}, []field{fieldID}, 1, nil},
}

// torchLines are the lines of the PyTorch vectors.
var torchLines = map[string]*verb{
	"a": {Event{Kind: Alloc}, []field{fieldID, fieldSize, fieldStream}, 2, nil},
	"w": {Event{Kind: Alloc}, []field{fieldID, fieldSize, fieldStream}, 2, nil},
	"g": {Event{Kind: Alloc}, []field{fieldID, fieldSize}, 2, nil},
	"f": {Event{Kind: Free}, []field{fieldID}, 1, nil},
	"r": {Event{Kind: Use}, []field{fieldID, fieldStream}, 2, nil},
	"d": {Event{Kind: Drain}, []field{fieldStream}, 1, nil},
	"e": {Event{Kind: Trim}, nil, 0, nil},
	"b": {Event{Kind: PoolBegin, Stream: AllStreams}, []field{fieldPool, fieldStream}, 1, nil},
	"c": {Event{Kind: PoolBegin}, []field{fieldPool, fieldStream}, 2, nil},
	"m": {Event{Kind: PoolBegin, Stream: AllStreams}, []field{fieldPool}, 1, nil},
	"o": {Event{Kind: PoolBegin, Stream: AllStreams}, []field{poolWith(PoolUseOnOOM)}, 1, nil},
	"s": {Event{Kind: PoolBegin, Stream: AllStreams}, []field{poolWith(PoolNoSplit)}, 1, nil},
	"n": {Event{Kind: PoolEnd}, []field{fieldPool}, 1, nil},
	"x": {Event{Kind: PoolRelease}, []field{fieldPool}, 1, nil},
	"t": {Event{Kind: Print, Arg: PrintTotals}, nil, 0, nil},
}

// poolWith returns the field for a pool with options.
func poolWith(options string) field {
	f := fieldPool
	f.set = func(p *parser, e *Event, b []byte) error {
		e.Tag = p.b.Tag(options)
		return fieldPool.set(p, e, b)
	}
	return f
}
