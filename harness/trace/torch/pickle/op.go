package pickle

// Op is a step of the machine. What different opcodes do alike is one step.
type Op uint8

// The steps.
const (
	refused    Op = iota // what is not of data
	Stop                 // the value on top of the stack is the result
	None                 // push None
	True                 // push True
	False                // push False
	Int                  // push an integer of 64 bits with a sign: Scanner.Int
	Uint                 // push one from 1<<63: Scanner.Uint
	Wide                 // push one that needs more than 64 bits
	Float                // push Scanner.Float
	Text                 // push Scanner.Text
	EmptyList            // push a new list
	EmptyDict            // push a new dictionary
	EmptyTuple           // push ()
	Mark                 // push a mark
	List                 // replace all above the mark by a list of it
	Dict                 // replace keys and values above the mark by a dictionary
	Tuple                // replace all above the mark by a tuple of it
	Tuple1               // replace the top value by a tuple
	Tuple2               // replace two
	Tuple3               // replace three
	Append               // append the top value to the list below
	Appends              // append all above the mark to the list below it
	SetItem              // set a key and a value in the dictionary below
	SetItems             // set all above the mark in the dictionary below it
	Get                  // push what the memo holds at Scanner.Index
	Put                  // keep the top value in the memo at Scanner.Index
	Memoize              // keep it in the next place of the memo
	header               // PROTO and FRAME, which the scanner takes
)

// operand says what follows an opcode.
type operand uint8

const (
	nothing operand = iota
	byte1           // a number of 1 byte, and so on
	byte2
	byte4
	signed4
	long1 // a length of 1 byte and an integer of so many
	long4
	float8 // big-endian
	text1  // a length of 1 byte and so many of text
	text4
	text8
	proto
	frame
	code // of what is refused: it could run code, or reach for what is not in the file
)

// opcode is what a byte says.
type opcode struct {
	name string
	op   Op
	arg  operand
}

// opcodes lists what the bytes say, all that Python has: what is refused is named.
var opcodes = [256]opcode{
	'.': {"STOP", Stop, nothing}, 'N': {"NONE", None, nothing}, 0x88: {"NEWTRUE", True, nothing},
	0x89: {"NEWFALSE", False, nothing}, 'J': {"BININT", Int, signed4}, 'K': {"BININT1", Int, byte1},
	'M': {"BININT2", Int, byte2}, 0x8a: {"LONG1", Int, long1}, 0x8b: {"LONG4", Int, long4},
	'G': {"BINFLOAT", Float, float8}, 0x8c: {"SHORT_BINUNICODE", Text, text1}, 'X': {"BINUNICODE", Text, text4},
	0x8d: {"BINUNICODE8", Text, text8}, ']': {"EMPTY_LIST", EmptyList, nothing},
	'}': {"EMPTY_DICT", EmptyDict, nothing}, ')': {"EMPTY_TUPLE", EmptyTuple, nothing},
	'(': {"MARK", Mark, nothing}, 'l': {"LIST", List, nothing}, 'd': {"DICT", Dict, nothing},
	't': {"TUPLE", Tuple, nothing}, 0x85: {"TUPLE1", Tuple1, nothing}, 0x86: {"TUPLE2", Tuple2, nothing},
	0x87: {"TUPLE3", Tuple3, nothing}, 'a': {"APPEND", Append, nothing}, 'e': {"APPENDS", Appends, nothing},
	's': {"SETITEM", SetItem, nothing}, 'u': {"SETITEMS", SetItems, nothing}, 'h': {"BINGET", Get, byte1},
	'j': {"LONG_BINGET", Get, byte4}, 'q': {"BINPUT", Put, byte1}, 'r': {"LONG_BINPUT", Put, byte4},
	0x94: {"MEMOIZE", Memoize, nothing}, 0x80: {"PROTO", header, proto}, 0x95: {"FRAME", header, frame},

	'c': {"GLOBAL", refused, code}, 0x93: {"STACK_GLOBAL", refused, code}, 'R': {"REDUCE", refused, code},
	'b': {"BUILD", refused, code},
	'i': {"INST", refused, code}, 'o': {"OBJ", refused, code}, 0x81: {"NEWOBJ", refused, code},
	0x92: {"NEWOBJ_EX", refused, code},
	'P':  {"PERSID", refused, code}, 'Q': {"BINPERSID", refused, code}, 0x82: {"EXT1", refused, code},
	0x83: {"EXT2", refused, code},
	0x84: {"EXT4", refused, code}, 0x97: {"NEXT_BUFFER", refused, code}, 0x98: {"READONLY_BUFFER", refused, code},
	// These only occur in protocols 0 and 1, or with types that are no data of ours.
	'0': {name: "POP"}, '1': {name: "POP_MARK"}, '2': {name: "DUP"}, 'F': {name: "FLOAT"}, 'I': {name: "INT"},
	'L': {name: "LONG"}, 'S': {name: "STRING"}, 'T': {name: "BINSTRING"}, 'U': {name: "SHORT_BINSTRING"},
	'V': {name: "UNICODE"}, 'g': {name: "GET"}, 'p': {name: "PUT"}, 'B': {name: "BINBYTES"},
	'C': {name: "SHORT_BINBYTES"}, 0x8e: {name: "BINBYTES8"}, 0x8f: {name: "EMPTY_SET"},
	0x90: {name: "ADDITEMS"}, 0x91: {name: "FROZENSET"}, 0x96: {name: "BYTEARRAY8"},
}
