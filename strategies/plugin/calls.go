package plugin

import (
	"fmt"
	"strconv"
	"strings"
)

// callOp is the kind of a call to the host. native/wire.h has the same values.
type callOp uint64

const (
	callStart  callOp = iota + 1 // devices; loads the plug-in unless it is loaded, then calls init and fraction
	callAlloc                    // size, device, stream -> address
	callFree                     // address, size, device, stream
	callReset                    // no arguments
	callRecord                   // address, stream
	callBase                     // address, size -> base, and its size
)

// The ends of a call, as in native/wire.h.
const (
	verdictReturned uint64 = iota // the reply is valid
	verdictThrew                  // the text is the text of the exception
	verdictUnloaded               // the plug-in cannot be loaded; the text is the reason
)

type call struct {
	op  callOp
	arg [4]uint64
}

// describe returns the call in C syntax, with the plug-in's function names.
func (c *Config) describe(k call) string {
	switch k.op {
	case callAlloc:
		return fmt.Sprintf("%s(%d bytes, device %d, stream %d)", c.Alloc, k.arg[0], k.arg[1], k.arg[2])
	case callFree:
		return fmt.Sprintf("%s(0x%x, %d bytes, device %d, stream %d)", c.Free, k.arg[0], k.arg[1], k.arg[2], k.arg[3])
	case callReset:
		return c.Reset + "()"
	case callRecord:
		return fmt.Sprintf("%s(0x%x, stream %d)", c.RecordStream, k.arg[0], k.arg[1])
	case callBase:
		return fmt.Sprintf("%s(0x%x)", c.Base, k.arg[0])
	}
	var all []string
	if c.Init != "" {
		all = append(all, c.Init+"("+strconv.FormatUint(k.arg[0], 10)+" devices)")
	}
	if c.Fraction != "" {
		all = append(all, fmt.Sprintf("%s(%v, device %d)", c.Fraction, c.Share, c.Device))
	}
	if len(all) == 0 {
		return "loading it"
	}
	return strings.Join(all, " and ")
}
