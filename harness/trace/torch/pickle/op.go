package pickle

// Op is an operation of the pickle machine. Opcodes with the same effect share an Op.
type Op uint8

// The operations.
const (
	refused    Op = iota // not an opcode of data
	Stop                 // the value on top of the stack is the result
	None                 // push None
	True                 // push True
	False                // push False
	Int                  // push a signed integer of 64 bits: Scanner.Int
	Uint                 // push an unsigned integer of 64 bits, at least 1<<63: Scanner.Uint
	Wide                 // push an integer of more than 64 bits
	Float                // push Scanner.Float
	Text                 // push Scanner.Text
	EmptyList            // push a new list
	EmptyDict            // push a new dictionary
	EmptyTuple           // push ()
	Mark                 // push a mark
	List                 // replace the values above the mark by a list of them
	Dict                 // replace the keys and values above the mark by a dictionary
	Tuple                // replace the values above the mark by a tuple of them
	Tuple1               // replace the top value by a tuple
	Tuple2               // replace the top two values by a tuple
	Tuple3               // replace the top three values by a tuple
	Append               // append the top value to the list below it
	Appends              // append the values above the mark to the list below it
	SetItem              // set the top key and value in the dictionary below them
	SetItems             // set the keys and values above the mark in the dictionary below it
	Get                  // push the memo entry at Scanner.Index
	Put                  // store the top value in the memo at Scanner.Index
	Memoize              // store the top value at the next index of the memo
	header               // PROTO and FRAME, which the scanner handles
)

// operand is the format of the operand that follows an opcode.
type operand uint8

const (
	nothing operand = iota
	byte1           // an unsigned number of 1 byte; likewise below
	byte2
	byte4
	signed4
	long1 // a length of 1 byte, then an integer of that length
	long4
	float8 // big-endian
	text1  // a length of 1 byte, then a text of that length
	text4
	text8
	proto
	frame
	code // a refused opcode that could run code or refer to something outside the file
)

// opcode describes one opcode byte.
type opcode struct {
	name string
	op   Op
	arg  operand
}

// opcodes describes all of Python's opcodes by their byte, so that errors name the refused ones.
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
	// Used only by protocols 0 and 1, or for types that do not occur in snapshots.
	'0': {name: "POP"}, '1': {name: "POP_MARK"}, '2': {name: "DUP"}, 'F': {name: "FLOAT"}, 'I': {name: "INT"},
	'L': {name: "LONG"}, 'S': {name: "STRING"}, 'T': {name: "BINSTRING"}, 'U': {name: "SHORT_BINSTRING"},
	'V': {name: "UNICODE"}, 'g': {name: "GET"}, 'p': {name: "PUT"}, 'B': {name: "BINBYTES"},
	'C': {name: "SHORT_BINBYTES"}, 0x8e: {name: "BINBYTES8"}, 0x8f: {name: "EMPTY_SET"},
	0x90: {name: "ADDITEMS"}, 0x91: {name: "FROZENSET"}, 0x96: {name: "BYTEARRAY8"},
}
