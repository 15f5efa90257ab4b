package report

import (
	"fmt"
	"io"

	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/internal/units"
)

// Verification writes what came of holding a strategy to a recording, in a few lines.
func Verification(w io.Writer, r *verify.Result) error {
	_, err := fmt.Fprintf(w, `%s on %s, sha256 %.12s
%d of %d allocations predicted, and %d of %d new segments
opening state: %d live blocks, %s reserved
peak reserved: %s (%d bytes), recorded %s (%d bytes)
`, r.Strategy, units.Printable(r.Trace), r.TraceHash, r.Predicted, r.Allocs, r.InSegments, r.Segments,
		r.OpeningBlocks, units.Bytes(r.OpeningBytes),
		units.Bytes(r.Reserved), uint64(r.Reserved), units.Bytes(r.Recorded), uint64(r.Recorded))
	if err == nil && r.First != nil {
		_, err = fmt.Fprintf(w, "first disagreement: %v\n", r.First)
	}
	if err == nil && r.Lost > 0 {
		_, err = fmt.Fprintf(w, "%d of the %d that are not predicted lie, or would lie, in segments that came and went: "+
			"the recording does not tell their pool, which may be a private one\n", r.Lost, r.Allocs-r.Predicted)
	}
	if err == nil && r.Odd > 0 {
		_, err = fmt.Fprintf(w, "left out, because it cannot have been: %d; the first: %s\n", r.Odd, units.Printable(r.FirstOdd))
	}
	if err == nil && r.Stopped != "" {
		_, err = fmt.Fprintf(w, "the rest was not looked at: %s\n", units.Printable(r.Stopped))
	}
	return err
}
