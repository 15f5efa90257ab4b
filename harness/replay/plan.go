package replay

import (
	"fmt"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// faultKey is the key of the header that FaultPlan reads.
const faultKey = "fault-nth"

// FaultPlan returns which device call the trace of a counterexample wants refused, by the
// key fault-nth of its header; the calls that build and close the strategy count too.
func FaultPlan(h trace.Header) (device.FaultPlan, error) {
	nth, ok := h.Get(faultKey)
	if !ok {
		return device.FaultPlan{}, nil
	}
	n, err := strconv.ParseUint(nth, 10, 64)
	if err != nil {
		return device.FaultPlan{}, fmt.Errorf("%s: header fault-nth=%s: want the number of a device call", h.Name, nth)
	}
	return device.FaultPlan{Nth: n}, nil
}
